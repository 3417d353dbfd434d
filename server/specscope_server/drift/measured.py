"""What `make drift-study` counted: false verdicts, of any of three slots, with a mixed reference.

Written by it, as docs/guide/drift-study.md is.
"""

ALARMS = 0
WINDOWS = 20_400
KINDS_OF_TEXT = 17
