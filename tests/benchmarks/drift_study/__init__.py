"""How often the rules about hidden states cry wolf, and find what is wrong: `make drift-study`.

`texts` gathers domains of text, `make_states` runs a real model over them (with the rig's Python),
`reference` and `windows` make profiles of states with the product's code, `study` counts, `page` writes.
"""
