"""Hidden-state drift: does the draft see in serving what it was trained on?"""
