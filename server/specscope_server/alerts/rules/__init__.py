"""Rules: what is watched, when it counts as wrong, and what it would have said of the past.

1. `signals`: everything that can be watched, found in the domains, and every metric of the catalogue.
2. `schema`: a rule; `conditions/<kind>.py`: the kinds of conditions. `files`: rules as YAML.
3. `evaluate`: rules → readings at an instant. `backtest`: the same over history, through the state machine.
4. `pack/*.yaml`: the rules that are on by default. `store`, `service`, `endpoints`: rules by REST.
"""
