"""Run SGLang's server on a CPU without AMX; started with the rig's Python and SGLang's own arguments.

The attention backend `intel_amx` is the only CPU backend with an EAGLE draft; SGLang picks it only where
it sees AMX, so the platform is overridden. Its kernels come from the stand-in in `stubs/sgl_kernel`. The
guard at the end must stay: the schedulers are spawned processes that import this file again.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> None:
    """Serve until stopped."""
    from sglang.srt.runtime_context import override_platform
    from sglang.srt.server_args import prepare_server_args
    from sglang.srt.utils import kill_process_tree

    with override_platform(has_amx=True):
        server_arguments = prepare_server_args(arguments)
        from sglang.launch_server import run_server

        try:
            run_server(server_arguments)
        finally:
            kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    main(sys.argv[1:])
