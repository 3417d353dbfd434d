"""From readings to the outbox, stage by stage; each is a small pure function, what is kept is rows.

1. `evaluating`: rules → readings → changes of states (`states.machine`), with the card of each fire.
2. `rows`: states and transitions, written with compare-and-set in one transaction.
3. `inhibit`: alerts that another one explains, or that speak of an idle engine, are muted.
4. `silence`: alerts that somebody silenced are muted.
5. `group`: routes say which channels are told, and which alerts together.
6. `dedup`: is there something to tell this channel of this group now? A decision with its reason. `given_up`
   says what of earlier deliveries came to nothing.
7. `outbox`: the decision and what is to be delivered, in one transaction. `alerts.delivery` reads it.

`notifying` runs 3 to 7 in this order, `running` (one folder up) both halves.
"""
