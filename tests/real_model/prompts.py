"""Prompts of one narrow domain (cooking, colours, lists): question forms over small lists of words.

The head was trained on answers to `ALL[60:]`; `ALL[:60]` it has never seen, and held_out_prompts.json holds
the first 40 of them with the template of chats applied.
"""

from __future__ import annotations

import random

HELD_OUT = 60
NUMBERS = ("three", "four", "five", "six")
DISHES = """bread, pizza, pancakes, tomato soup, vegetable soup, an omelette, fried rice, a fruit salad,
a green salad, apple pie, banana bread, carrot cake, chocolate cake, cookies, mashed potatoes, roast
potatoes, pasta, spaghetti, lasagna, chili, lentil soup, chicken soup, roast chicken, fish tacos, a
sandwich, scrambled eggs, boiled eggs, french toast, waffles, muffins, porridge, oatmeal, granola,
hummus, guacamole, salsa, a smoothie, lemonade, hot chocolate, tea, coffee, rice pudding, cheesecake,
brownies, a burger, a burrito, noodles, curry, stew, risotto"""
FOODS = """apple, banana, orange, lemon, lime, pear, peach, plum, cherry, grape, strawberry, blueberry,
raspberry, mango, pineapple, melon, tomato, carrot, potato, onion, garlic, spinach, lettuce, cabbage,
broccoli, pea, bean, corn, pumpkin, cucumber, pepper, mushroom, egg, cheese, butter, milk, honey, sugar,
salt, rice, flour, chocolate, cinnamon, basil, mint, ginger, olive, coconut, almond, walnut"""
THINGS = """the sky, grass, snow, the sea, a rose, the sun, the moon, coal, sand, blood, gold, silver,
copper, a leaf in autumn, a leaf in spring, a raven, a swan, a fox, an elephant, a zebra, a polar bear, a
flamingo, a frog, a ladybird, a strawberry, a ripe banana, a lemon, a carrot, an eggplant, a pea, milk,
coffee, chocolate, wood, a brick, a cloud, smoke, the ocean at night, a rainbow, a sunset"""
GROUPS = """fruits, vegetables, colours, red foods, green foods, yellow fruits, kitchen tools, herbs,
spices, kinds of bread, kinds of cheese, kinds of pasta, kinds of tea, soups, salads, desserts, breakfast
foods, snacks, drinks, nuts, berries, root vegetables, leafy vegetables, warm colours, cool colours,
sauces, cooking methods, baking ingredients, farm animals, garden flowers"""


def words(text: str) -> list[str]:
    """Return the entries of a list as it is written above."""
    return text.replace("\n", " ").split(", ")


def all_prompts(seed: int = 7) -> list[str]:
    """Return every prompt once, in an order that is always the same."""
    found: list[str] = []
    for dish in words(DISHES):
        found += [f"How do I make {dish}?", f"What ingredients do I need for {dish}?"]
        found += [f"Write a short recipe for {dish}.", f"Give me three tips for making {dish}."]
    for food in words(FOODS):
        found += [f"What does {food} taste like?", f"What colour is {food}?"]
        found += [f"How should I store {food}?", f"Name three dishes that use {food}."]
    for thing in words(THINGS):
        found += [f"What colour is {thing}?", f"Describe the colour of {thing} in one sentence."]
    for group in words(GROUPS):
        found += [f"List {number} {group}." for number in NUMBERS] + [f"What are some common {group}?"]
    found = sorted(set(found))
    random.Random(seed).shuffle(found)
    return found
