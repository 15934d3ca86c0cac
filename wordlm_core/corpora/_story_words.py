"""Words and sentences of the story grammar that `stories` tells from.

A sentence is text with slots. `{thing}` stands for one word (or short phrase) of the list
`thing`; it is drawn where it first appears in a story and the same word ever after.
`{spot2}` is a second draw from the list `spot`. No word is drawn twice in a story.
`{=friend}` is the same as `{friend}`, but the sentence is left out of the choice while no
friend has been drawn. `{hero.they}` is the word's own form of the pronoun: she, he, it or
they; a capital (`{hero.They}`) makes it one that begins a sentence.

A story is an opening and a plot. A plot is a row of stages, each told in one sentence; a
`may` stage can be passed over, a `must` stage cannot.

Three rules keep the text unambiguous, so that the true probabilities are exact; tests hold
them. Of everything that can come next, no alternative is the beginning of another, up to its
first new slot. No sentence begins with a new slot. Every sentence has one full stop, question
mark or exclamation mark, at its end.
"""

from dataclasses import dataclass

from wordlm_core.text import EOS


@dataclass(frozen=True)
class Stage:
    """The sentences that can tell one step of a plot, all equally likely."""

    sentences: tuple[str, ...]
    needed: bool


Plot = tuple[Stage, ...]


def _must(*sentences: str) -> Stage:
    return Stage(sentences, needed=True)


def _may(*sentences: str) -> Stage:
    return Stage(sentences, needed=False)


def _words(text: str) -> tuple[str, ...]:
    return tuple(" ".join(word.split()) for word in text.split(","))


# -- words by slot

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
    "child": ("girl", "boy"),
    "friend": _GIRLS + _BOYS,
    "elder": _WOMEN + _MEN,
    "person": _words("""baker, farmer, postman, sailor, fisherman, librarian, gardener, painter,
        doctor, clown, queen, princess, knight, captain, shepherd, miller, tailor, teacher,
        policeman, nurse, singer, wizard"""),
    "trait": _words("""kind, brave, clever, curious, quiet, cheerful, gentle, shy, funny, polite,
        lively, friendly, careful, playful, silly, helpful, patient, busy"""),
    "det": ("a", "some"),
    "adj": _words("""red, blue, green, yellow, purple, pink, white, black, golden, silver, little,
        big, tiny, soft, shiny, new, round, striped, wooden, pretty, fancy, bright, heavy, light,
        wonderful, magic, strange, spotted"""),
    "count": ("a", "two", "three", "four"),
    "near": _words("under, behind, beside, near, next to, in front of"),
    "spot": _words("""bed, sofa, table, chair, shelf, cupboard, stairs, door, window, tree, bush,
        bench, fence, rock, log, gate, wall, curtain, stove, fridge, piano, swing, slide, haystack,
        flowerpot, mailbox, wheelbarrow, ladder"""),
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
        knit, juggle, hop, explore, make music, catch bugs, splash in puddles, row, ski"""),
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
WORDS |= {governor: tuple(lists) for governor, lists in GOVERNED.values() if governor not in WORDS}

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
    "child": ("girl", "boy", "thing", "things"),
}

# -- sentences

_JOY = "{hero} was so {happy} that {hero.they} {cheered}."
_JOY_OF_FRIEND = "{friend} was so {happy} that {friend.they} {cheered}."
_FRIENDS_END = _may(
    "{hero} and {friend} were the best of friends.",
    "After that, {friend} and {hero} shared everything, even the {adj} {thing}.",
    "Whenever {hero} saw the {thing}, {hero.they} thought of {friend}.",
)

_LOST: Plot = (
    _must(
        "One {weather} {hour}, the {thing} {thing.were} gone.",
        "But on the way to the {place}, {hero.they} lost {thing.them}.",
        "Then a strong wind carried {thing.them} away.",
    ),
    _may(
        "{hero} was {sad} because {hero.they} missed the {thing} so much.",
        "{hero.They} felt {sad} and began to cry.",
        "{hero} sat down {near} the {spot} and cried.",
    ),
    _may(
        "{hero.They} looked {near1} the {spot1}, but found only {junk}.",
        "First, {hero} searched {near1} the {spot1}.",
    ),
    _may(
        "Next, {hero.they} tried {near2} the {spot2}, but {thing.they} {thing.were} not there.",
        "{hero.They} searched the whole {room}, too.",
    ),
    _may(
        '{hero} asked {friend}, "Have you seen my {adj} {thing}?"',
        "{hero.They} told {hero.their} friend {friend} about the {thing}.",
    ),
    _may(
        '{=friend} said, "Do not be {=sad}, I will help you."',
        "Now {=friend} and {hero} were looking together.",
        'Then {hero.their} {elder} said, "Think about where you had {thing.them} last."',
    ),
    _must(
        "At last, {hero} found the {adj} {thing} {near3} the {spot3}.",
        "Suddenly, {=friend} saw {thing.them} {near3} the {spot3}.",
        "In the end, {thing.they} {thing.were} {near3} the {spot3} all the time!",
    ),
    _may(
        _JOY,
        "Now {hero} was not {=sad} any more.",
        '{hero} said, "Thank you, {=friend}!"',
    ),
    _may(
        "That night, the {adj} {thing} {thing.were} safe {near4} the {spot4}.",
        "From then on, {hero} took good care of the {adj} {thing}.",
        "{hero} never lost {hero.their} {thing} again.",
    ),
)

_GIFT: Plot = (
    _must(
        "Soon after, {hero.they} met {friend}, who had nothing to play with.",
        "At the {place}, {hero.they} saw {friend}, who looked {sad}.",
    ),
    _may(
        '{hero} asked, "Why are you so {=sad}?"',
        '{hero} asked, "Do you want to play with me?"',
    ),
    _may(
        '{friend} answered, "I wish I had {det} {thing} like yours."',
        '{friend} answered, "I have no toys at all."',
    ),
    _must(
        "So {hero} gave {friend} the {adj} {thing}.",
        'Then {hero} said, "You can have my {adj} {thing}."',
        "Without a word, {hero} put the {adj} {thing} into {friend.their} hands.",
    ),
    _may(_JOY_OF_FRIEND, "{friend} could not stop smiling."),
    _may(
        "Many weeks later, {hero} was ill in bed.",
        "In {season}, it was the birthday of {hero}.",
    ),
    _may(
        "Then {friend} came with the {adj} {thing} and gave {thing.them} back.",
        "To cheer {hero.them} up, {friend} brought back the {thing}.",
    ),
    _FRIENDS_END,
)

_QUARREL: Plot = (
    _must(
        "Along came {friend} and wanted the {thing}, too.",
        "Next door lived {friend}, who wanted {thing.them} as well.",
    ),
    _may(
        '{friend} shouted, "Give {thing.them} to me!"',
        "{hero} held {thing.them} tight and did not let go.",
    ),
    _may("They both pulled until they fell into the {mud}."),
    _may(
        "Now {hero} was {cross} and {friend} was {sad}.",
        "{friend} was so {cross} that {friend.they} stamped {friend.their} feet.",
    ),
    _may(
        'Then {hero.their} {elder} said, "You can take turns."',
        '{hero.Their} {elder} asked, "Why are you so {=cross}?"',
    ),
    _must(
        "In the end, they took turns with the {adj} {thing}.",
        '{friend} said, "I am sorry, {hero}."',
        '{hero} said, "I am sorry, {friend}."',
    ),
    _may(
        "Nobody was {=cross} any more.",
        "Soon {hero} and {friend} were {happy} again.",
    ),
    _may("They played with the {thing} until {meal}."),
    _FRIENDS_END,
)

_KEPT: Plot = (
    _must(
        "{hero.They} took {thing.them} everywhere, even to the {place}.",
        "Every night, {thing.they} {thing.were} in {hero.their} bed.",
        "{hero} showed {thing.them} to everybody at the {place}.",
    ),
    _may(
        "All the children at the {=place} wanted to touch {thing.them}.",
        "Even {hero.their} {elder} liked {thing.them}.",
    ),
    _may(
        "Years later, the {adj} {thing} {thing.were} still {near} the {spot}.",
        "To this day, {hero} loves the {adj} {thing}.",
    ),
)

_ANIMAL: Plot = (
    _must(
        "There {hero.they} saw {count} {need} {animal} {near} the {spot}.",
        "In the tall grass, {hero} discovered {count} {need} {animal}.",
    ),
    _may(
        "The {animal} {animal.were} shaking a little.",
        "The {animal} looked up with big eyes.",
    ),
    _may(
        "{hero} felt sorry for the {animal}.",
        '{hero} whispered, "Do not worry, little {animal}."',
    ),
    _may('{hero.Their} {elder} said, "{animal.They} {animal.are} only {need}."'),
    _must(
        "So {hero} brought {animal.them} {remedy}.",
        "At once, {hero.they} fetched {remedy} for the {animal}.",
    ),
    _may(
        "Soon the {animal} {animal.were} not {need} any more.",
        "The {animal} thanked {hero.them} with a dance.",
    ),
    _may("{hero} stroked {animal.them} {adverb}.", "Right away, the {animal} came closer."),
    _may(
        "The next day, the {animal} {animal.were} waiting at the {place}.",
        "In the evening, the {animal} followed {hero.them} home.",
    ),
    _may(
        "{hero} and the {animal} were friends from then on.",
        "At bedtime, {hero} told {hero.their} {elder} about the {animal}.",
        "{hero} dreamed of the {animal} all night.",
    ),
)

_FINDING: Plot = (
    _must(
        "On the ground lay {det} {adj} {thing}.",
        "{hero.They} almost stepped on {det} {adj} {thing}.",
        "{hero.They} noticed {det} {adj} {thing} {near} the {spot}.",
    ),
    _may(
        '{hero} wondered, "Who lost {thing.them}?"',
        "{hero} picked {thing.them} up {adverb}.",
        "{thing.They} looked almost new.",
    ),
    _may(
        "{hero.They} asked the {person}, but the {person} only shrugged.",
        "First, {hero.they} asked a {person} and then a {person2}.",
    ),
    _may("Then {hero} heard a voice.", "Not far away, somebody was crying."),
    _must(
        "It was {friend}, who missed {friend.their} {adj} {thing}.",
        "The owner was {friend}, a {trait} {friend.child} from the next village.",
    ),
    _may(
        '{hero} asked, "{thing.Are} {thing.these} your {thing}?"',
        "{hero} gave {thing.them} back {adverb2}.",
    ),
    _may(_JOY_OF_FRIEND, '{friend} said, "Thank you, {hero}!"'),
    _may(
        "As a reward, {hero} got some {food}.",
        "{friend.Their} {elder2} gave them both some {food}.",
    ),
    _FRIENDS_END,
)

_SIGHTS: Plot = (
    _must(
        "There were many {sight} there.",
        "{hero.They} had never seen so many {sight} before.",
        "Everywhere {hero.they} looked, there were {sight}.",
    ),
    _may("{hero} counted {number} of them.", "{hero.They} drew a picture of the {sight}."),
    _may(
        "Soon {friend} came and watched the {sight}, too.",
        "With {friend}, {hero.they} played {game} all day.",
    ),
    _may("For {meal2}, {hero.they} had some {food}."),
    _must("When it got dark, {hero} walked home {adverb}.", "Much later, {hero} had to go home."),
    _may(
        'At home, {hero.their} {elder} asked, "What did you see at the {place}?"',
        '{hero} told {hero.their} {elder}, "There are so many {sight} at the {place}."',
    ),
    _may(
        "That night, {hero} dreamed of the {sight}.",
        "{hero} wants to see the {place} again.",
        "One day, {hero} will show the {sight} to {=friend} again.",
    ),
)

_STRAYED: Plot = (
    _must(
        "Suddenly, {hero.they} could not see {hero.their} {elder} any more.",
        "But {hero.they} walked too far and lost the way.",
    ),
    _may(
        "{hero} felt {scared} and did not know what to do.",
        "Tears ran down {hero.their} cheeks.",
    ),
    _may(
        "{hero.They} called and called, but nobody answered.",
        "{hero} looked {near1} the {spot1} and {near2} the {spot2}.",
    ),
    _may(
        'A {person} asked, "Why are you {=scared}?"',
        "By and by, a {person} came along and took {hero.their} hand.",
    ),
    _may(
        '{hero} said, "I cannot find my {elder}."',
        "{hero} told the {=person} everything.",
    ),
    _must(
        "At last, {hero.their} {elder} came running.",
        "Finally, {hero} found {hero.their} {elder} {near3} the {spot3}.",
    ),
    _may(
        "{hero.Their} {elder} hugged {hero.them} for a long time.",
        "Now {hero} was not {=scared} any more.",
    ),
    _may("They thanked the {=person}.", "On the way home, they bought some {food}."),
    _may(
        "Since then, {hero} holds the hand of {hero.their} {elder} at the {place}.",
        "After this, {hero} stayed close to {hero.their} {elder}.",
    ),
)

_FEAR: Plot = (
    _must(
        "But {hero} was {scared} of the {fear}.",
        "Only one thing made {hero.them} {scared}, and that was the {fear}.",
    ),
    _may(
        "One {weather} {hour}, {hero.they} hid {near} the {spot} because of the {fear}.",
        "{hero.They} often pulled a pillow over {hero.their} head.",
    ),
    _may("Thump, thump went {hero.their} heart!"),
    _must(
        '{hero.Their} {elder} said, "The {fear} is only {comfort}."',
        "Then {hero.their} {elder} explained that it was only {comfort}.",
    ),
    _may(
        "{hero} took a deep breath and counted to {number}.",
        "They held hands and thought about the {fear} together.",
    ),
    _may(
        "Now {hero} was not {=scared} any more.",
        "Little by little, {hero} felt {brave}.",
    ),
    _may("The next week, {hero} even helped {friend}, who was {scared} of the {fear}, too."),
    _may(
        "Today {hero} smiles at the {fear}.",
        "{hero} tells everyone that the {fear} is only {comfort}.",
        'Together, {hero} and {=friend} sing, "We are not {scared}!"',
    ),
)

_COOKING: Plot = (
    _must(
        "One {weather} {hour}, {hero} wanted to make {dish} for {hero.their} {elder}.",
        "For the birthday of {hero.their} {elder}, {hero.they} made {dish}.",
    ),
    _may(
        "{hero.They} put {ingredient1} and {ingredient2} into a big bowl.",
        "First came {ingredient1}, then came {ingredient2}.",
    ),
    _may(
        "{hero} stirred until {hero.their} arms were tired.",
        "Soon the whole house smelled of {dish}.",
    ),
    _may(
        "Oh no, {hero} had forgotten the {ingredient3}!",
        "Then {friend} knocked and wanted to help.",
    ),
    _must(
        "At last, the {dish} {dish.were} ready.",
        "An hour later, the {dish} {dish.were} on the table.",
    ),
    _may(
        '{hero.Their} {elder} tasted {dish.them} and said, "How {tasty}!"',
        "Everybody wanted more {dish}.",
    ),
    _may(_JOY, "For {=friend}, there was a second plate.", '{hero} sang, "I can cook!"'),
    _may(
        "From that day on, {hero} made {dish} every {weekday}.",
        "Now {hero.their} {elder} always asks {hero} for {dish}.",
    ),
)

_GARDEN: Plot = (
    _must(
        "In {season}, {hero} planted some {seed} {near} the {spot}.",
        "As a present, {hero} got some {seed} to plant from {hero.their} {elder}.",
    ),
    _may("{hero.They} watered the {seed} every {hour}."),
    _may("Day after day, nothing happened.", "The sun was shining and the rain was falling."),
    _may(
        '{hero} was {cross} and asked, "Why do they not grow?"',
        '{hero.Their} {elder} said, "You must wait, {hero}."',
    ),
    _must(
        "Then, one {hour2}, the {seed} were as tall as {hero}.",
        "By {season2}, there were {seed} everywhere.",
    ),
    _may(_JOY, "Now {hero} was not {=cross} any more."),
    _may(
        "{hero.They} picked the {seed} with {friend}.",
        "A big basket of {seed} was for {friend}.",
    ),
    _may(
        "Today the {seed} of {hero} are famous in the village.",
        "{hero} will plant {seed} again next year.",
        '{=friend} said, "Your {seed} are beautiful, {hero}."',
    ),
)

_LEARNING: Plot = (
    _must(
        "More than anything, {hero} wanted to learn to {hobby2}.",
        "There was one thing {hero.they} could not do, and that was to {hobby2}.",
    ),
    _may(
        "{hero.They} tried and tried, but it was too hard.",
        "The first time, {hero} fell into the {mud}.",
    ),
    _may("{hero} felt {cross} and wanted to give up."),
    _may("Luckily, {friend} could {hobby2} very well.", "A {person} only laughed."),
    _may(
        '{=friend} said, "I can teach you, {hero}."',
        'Then {hero.their} {elder} said, "Try once more, {hero}."',
    ),
    _must(
        "After {number} days, {hero} could {hobby2}, too.",
        "Suddenly it worked, and {hero} could {hobby2}!",
    ),
    _may(_JOY, "Now {hero} was not {=cross} any more."),
    _may("{hero} showed it to {hero.their} {elder}."),
    _may(
        "{hero} and {=friend} still {hobby2} together.",
        "Today {hero} teaches other children to {hobby2}.",
    ),
)

OPENINGS: tuple[tuple[Stage, tuple[Plot, ...]], ...] = (
    (
        _must(
            "Once upon a time, a {trait} {child} named {hero} had {det} {adj} {thing}.",
            "A {child} called {hero} owned {det} {adj} {thing}.",
            "Of all things in the house, {hero} loved {hero.their} {adj} {thing} the most.",
            "On {weekday}, {hero} got {det} {adj} {thing} from {hero.their} {elder}.",
            "Last {season}, {hero} made {det} {adj} {thing} with {hero.their} {elder}.",
            "While cleaning the {room}, {hero} came across {det} {adj} {thing}.",
        ),
        (_LOST, _GIFT, _QUARREL, _KEPT),
    ),
    (
        _must(
            "One {weather} {hour}, {hero} went to the {place}.",
            "It was a {weather} {hour}, and {hero} was at the {place}.",
            "During the {season} holidays, {hero} walked to the {place} with {hero.their} {elder}.",
            "After {meal}, {hero} and {hero.their} {elder} visited the {place}.",
            "Early on {weekday}, {hero} ran to the {place} to play.",
        ),
        (_ANIMAL, _FINDING, _SIGHTS, _STRAYED),
    ),
    (
        _must(
            "Once there was a {trait} {child} named {hero} who liked to {hobby}.",
            "Long ago, in a small house near the {place}, lived a {trait} {child} named {hero}.",
            "In our village, everyone knew {hero}, a {trait} {hero.child}.",
            "There was a {trait} {child} whose name was {hero}.",
            "This is the story of {hero}, who could {hobby} all day.",
            "Little {hero} was a {trait} {hero.child} who loved to {hobby}.",
        ),
        (_FEAR, _COOKING, _GARDEN, _LEARNING),
    ),
)
THE_END = _must(EOS)
