// Loads plotly.js once, when the first chart needs it.

let loading = null;

export function loadPlotly() {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = document.querySelector("meta[name=plotly]").content;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => { loading = null; reject(new Error("the chart library did not load")); };
    document.head.append(script);
  });
  return loading;
}
