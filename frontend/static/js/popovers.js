// Explanations behind "?": Escape or a press elsewhere closes the open one. (Their common name lets only one be open.)

const OPEN = ".why[open]";

export function startPopovers() {
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && document.querySelector(OPEN);
    if (open) close(open);
  });
  document.addEventListener("pointerdown", (event) => {
    const open = document.querySelector(OPEN);
    if (open && !open.contains(event.target)) open.open = false;
  });
}

function close(details) {
  details.open = false;
  details.querySelector("summary").focus();
}
