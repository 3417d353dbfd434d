"""References: what the hidden states of a training dump look like, read without torch and without a GPU.

A dump is opened by its content, its tensors are told apart by shape, a few rows of many requests are read
through a memory map, and what leaves is one small file of profiles that compare with those of serving.
Nothing of a dump is ever executed.
"""
