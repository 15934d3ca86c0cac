"""Words of the story grammar, by slot, and what agrees with them.

`_story_plots` says what a slot is. Of everything that one slot can take, no phrase is the
beginning of another.
"""


def _words(text: str) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(","))


_GIRLS = _words("""Ada, Bella, Clara, Dora, Ella, Fiona, Greta, Hana, Ida, Julia, Kira, Lena, Mia,
    Nora, Olga, Paula, Rita, Sara, Tessa, Una, Vera, Wanda, Yara, Zoe""")
_BOYS = _words("""Adam, Ben, Carl, David, Emil, Felix, George, Hugo, Ivan, Jonas, Karim, Leo, Max,
    Noah, Oscar, Peter, Rami, Sam, Tom, Uli, Victor, Willy, Yusuf, Zack""")
_WOMEN = _words("mother, grandma, aunt, big sister")
_MEN = _words("father, grandpa, uncle, big brother")

_ONE_THING = _words("""ball, kite, hat, book, drum, doll, lantern, scarf, spoon, bell, key, boat,
    basket, whistle, ribbon, button, cup, blanket, umbrella, puzzle, bucket, shovel, flute, ring,
    coin, feather, shell, pencil, mask, pillow, robot, wagon, puppet, trumpet, sweater, jacket,
    necklace, purse, map, clock, mirror, teapot, rope, magnet, medal, crown""")
_MANY_THINGS = _words("""boots, shoes, gloves, mittens, socks, crayons, stickers, beads, blocks,
    marbles, cards, glasses, slippers, paints, skates, balloons""")
_ONE_ANIMAL = _words("""duck, puppy, kitten, rabbit, mouse, frog, owl, fox, squirrel, turtle, lamb,
    goat, pony, hen, goose, swan, snail, beetle, hedgehog, monkey, parrot, crow, beaver, badger,
    otter, seal, penguin, donkey, lizard, butterfly""")
_MANY_ANIMALS = _words("""ducks, puppies, kittens, rabbits, mice, frogs, owls, foxes, squirrels,
    turtles, lambs, goats, ponies, hens, geese, swans, snails, beetles, hedgehogs, monkeys,
    parrots, crows, beavers, badgers, otters, seals, penguins, donkeys, lizards, butterflies""")
_MANY_DISHES = _words("pancakes, cookies, noodles, dumplings")
_SEEDS = _words("""sunflowers, pumpkins, beans, carrots, roses, tulips, tomatoes, melons, peas,
    radishes, onions, daisies, poppies, cucumbers""")

WORDS: dict[str, tuple[str, ...]] = {
    "friend": _GIRLS + _BOYS,
    "elder": _WOMEN + _MEN,
    "person": _words("""baker, farmer, postman, sailor, fisherman, librarian, gardener, painter,
        doctor, clown, queen, princess, knight, captain, shepherd, miller, tailor, teacher,
        policeman, nurse, singer, wizard"""),
    "trait": _words("""kind, brave, clever, curious, quiet, cheerful, gentle, shy, funny, polite,
        lively, friendly, careful, playful, silly, helpful, patient, busy"""),
    "adj": _words("""red, blue, green, yellow, purple, pink, white, black, golden, silver, little,
        big, tiny, soft, shiny, new, round, striped, wooden, pretty, fancy, bright, heavy, light,
        wonderful, magic, strange, spotted"""),
    "near": _words("under, behind, beside, near, next to, in front of"),
    "spot": _words("""bed, sofa, table, chair, shelf, cupboard, stairs, door, window, curtain,
        stove, fridge, piano, lamp, desk, carpet, bookcase, fireplace"""),
    "corner": _words("""tree, bush, bench, fence, rock, log, gate, wall, swing, slide, haystack,
        flowerpot, mailbox, wheelbarrow, ladder, fountain, well, hedge, stump, lamppost"""),
    "room": _words("kitchen, attic, cellar, bedroom, hall, garage, bathroom, shed"),
    "junk": _words("""dust, a cobweb, an old sock, a dry leaf, a broken plate, some crumbs,
        a sleepy spider, an empty jar"""),
    "mud": _words("mud, grass, snow, leaves, sand, water, hay, flowers"),
    "weather": _words("sunny, rainy, windy, snowy, cloudy, foggy, warm, cool, frosty, stormy"),
    "hour": _words("morning, afternoon, evening, day"),
    "weekday": _words("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    "season": _words("spring, summer, autumn, winter"),
    "meal": _words("breakfast, lunch, dinner, supper"),
    "number": _words("three, five, six, seven, eight, nine, ten, eleven, twelve, twenty"),
    "hobby": _words("""paint, sing, dance, swim, climb trees, read, jump, draw, skate,
        collect stones, tell stories, count the stars, whistle, fish, run, fly kites,
        feed the birds, write letters, dig holes, build towers, play chess, ride a bicycle, bake,
        knit, juggle, hop, yodel, make music, catch bugs, splash in puddles, row, ski"""),
    "game": _words("tag, hide and seek, football, pirates, detectives, checkers, hopscotch"),
    "food": _words("""bread, cheese, apples, berries, grapes, nuts, popcorn, honey, jam, pears,
        plums, ice cream, chocolate, cherries, toast, sandwiches, cocoa, lemonade"""),
    "tasty": _words("delicious, sweet, yummy, tasty, lovely, crunchy"),
    "sad": _words("sad, upset, worried, unhappy, gloomy, miserable, heartbroken"),
    "happy": _words("happy, glad, proud, joyful, delighted, thrilled, pleased, excited, merry"),
    "scared": _words("scared, afraid, frightened, terrified"),
    "cross": _words("angry, cross, grumpy, furious, impatient"),
    "brave": _words("calm, strong, safe, better, bold"),
    "cheered": _words("""laughed out loud, clapped, danced in a circle, jumped up and down, sang,
        shouted with joy, turned a somersault, hugged everyone, whirled around, giggled"""),
    "adverb": _words("""slowly, quickly, carefully, quietly, happily, gently, bravely, softly,
        proudly, eagerly"""),
    "seed": _SEEDS,
}

# Lists that depend on an earlier word of the story; without it, all of them together.
GOVERNED: dict[str, tuple[str, dict[str, tuple[str, ...]]]] = {
    "hero": ("child", {"girl": _GIRLS, "boy": _BOYS}),
    "thing": ("det", {"a": _ONE_THING, "some": _MANY_THINGS}),
    "animal": (
        "count",
        {
            "a": _ONE_ANIMAL,
            "two": _MANY_ANIMALS,
            "three": _MANY_ANIMALS,
            "four": _MANY_ANIMALS,
        },
    ),
    "remedy": (
        "need",
        {
            "hungry": _words("fresh bread, a bowl of oats, sweet berries"),
            "thirsty": _words("a bowl of water, warm milk"),
            "cold": _words("a thick blanket, a woolly scarf, a hot stone"),
            "tired": _words("a bed of straw, a big cushion"),
            "wet": _words("a dry towel, an umbrella"),
            "lonely": _words("a cuddly toy, a friendly song"),
            "dirty": _words("soap and a sponge, a tub of bubbles"),
            "hurt": _words("a clean bandage, a spoonful of medicine"),
        },
    ),
    "sight": (
        "place",
        {
            "beach": _words("waves, crabs, seagulls, sandcastles"),
            "forest": _words("mushrooms, pinecones, ferns, woodpeckers"),
            "market": _words("lemons, baskets, pigeons, fishes"),
            "library": _words("books, pictures, shelves, atlases"),
            "farm": _words("cows, pigs, tractors, chickens"),
            "lake": _words("sailboats, dragonflies, reeds, ripples"),
            "zoo": _words("lions, elephants, giraffes, zebras"),
            "meadow": _words("bees, clovers, grasshoppers, ladybirds"),
            "playground": _words("swings, seesaws, children, tunnels"),
            "museum": _words("dinosaurs, statues, vases, skeletons"),
            "bakery": _words("cakes, buns, pretzels, muffins"),
            "pond": _words("tadpoles, lilies, toads, fish"),
            "harbour": _words("ships, anchors, nets, sailors"),
            "castle": _words("towers, knights, flags, dungeons"),
            "station": _words("trains, suitcases, signals, tickets"),
            "mountain": _words("eagles, caves, clouds, waterfalls"),
            "fair": _words("carousels, clowns, prizes, jugglers"),
            "circus": _words("acrobats, tents, horses, magicians"),
            "orchard": _words("trees, peaches, wasps, ladders"),
            "airport": _words("planes, pilots, helicopters, travellers"),
        },
    ),
    "comfort": (
        "fear",
        {
            "dark": _words("the day taking a nap, a blanket for the earth"),
            "thunder": _words("two clouds bumping, the sky clearing its throat"),
            "wind": _words("air in a hurry, the breath of the hills"),
            "sea": _words("a giant bathtub, salty rain at rest"),
            "old clock": _words("a box that counts, a wheel that ticks"),
            "long tunnel": _words("a road with a roof, a hill with a hole"),
            "big dog": _words("a wolf who likes cuddles, a rug that barks"),
            "shadow": _words("a place without light, a friend of the lamp"),
        },
    ),
    "ingredient": (
        "dish",
        {
            "soup": _words("potatoes, leeks, salt, parsley"),
            "cake": _words("flour, sugar, eggs, butter"),
            "pancakes": _words("flour, milk, eggs, syrup"),
            "cookies": _words("oats, raisins, butter, cinnamon"),
            "pizza": _words("dough, mozzarella, olives, peppers"),
            "pudding": _words("cream, vanilla, sugar, almonds"),
            "noodles": _words("eggs, salt, basil, garlic"),
            "salad": _words("lettuce, celery, vinegar, walnuts"),
            "dumplings": _words("cabbage, ginger, dough, spinach"),
            "porridge": _words("oats, milk, blueberries, syrup"),
        },
    ),
}
# What a list depends on is drawn from the keys of that list.
WORDS.update({governor: tuple(lists) for governor, lists in GOVERNED.values()})

# -- agreement: the columns are she, he, it, they

SHE, HE, IT, THEY = range(4)
KIND: dict[str, int] = {
    **dict.fromkeys((*_GIRLS, *_WOMEN), SHE),
    **dict.fromkeys((*_BOYS, *_MEN), HE),
    **dict.fromkeys((*_MANY_THINGS, *_MANY_ANIMALS, *_MANY_DISHES), THEY),
}  # every other word is an it
FORMS: dict[str, tuple[str, str, str, str]] = {
    "they": ("she", "he", "it", "they"),
    "them": ("her", "him", "it", "them"),
    "their": ("her", "his", "its", "their"),
    "were": ("was", "was", "was", "were"),
    "are": ("is", "is", "is", "are"),
    "these": ("this", "this", "this", "these"),
    "some": ("a", "a", "a", "some"),
    "child": ("girl", "boy", "thing", "things"),
}
