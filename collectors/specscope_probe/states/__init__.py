"""State profiles: what the hidden states that the draft is given look like, sampled inside the engine.

Rows are chosen on the CPU, reduced on the device on the stream in use without ever waiting for it, and
finished by a thread of the probe's own with numpy. What leaves are sums, counts and a few norms.
"""
