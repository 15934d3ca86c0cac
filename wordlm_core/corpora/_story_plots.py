"""Sentences of the story grammar that `stories` tells from.

A sentence is text with slots. `{thing}` stands for one word (or short phrase) of the list
`thing` in `_story_words`; it is drawn where it first appears in a story and is the same word
ever after. `{spot2}` is another draw from the list `spot`. No word is drawn twice in a story.
`{=friend}` is the same as `{friend}`, but the sentence is left out of the choice while no
friend has been drawn. `{hero.they}` is the pronoun that agrees with the word: she, he, it or
they; with a capital, `{hero.They}`, as a sentence begins.

A story is an opening and a plot. A plot is a row of stages, each told in one sentence; a
`may` stage can be passed over, a `must` stage cannot.

Three rules keep the text unambiguous, so that the true probabilities are exact; tests hold
them. Of all sentences that can come next, cut before their first new slot, none is the
beginning of another. No sentence begins with a new slot. Every sentence has one full stop,
question mark or exclamation mark, at its end.
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
        "Suddenly, {=friend} saw {thing.them} {near3} the {corner}.",
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
        '{friend} said, "I wish I had {thing.some} {thing} like yours."',
        '{friend} said, "I have no toys at all."',
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
        "There {hero.they} saw {count} {need} {animal} {near} the {corner}.",
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
        "{hero.They} noticed {det} {adj} {thing} {near} the {corner}.",
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
    _may("Suddenly, {hero} heard a voice.", "Not far away, somebody was crying."),
    _must(
        "Then came {friend}, who missed {friend.their} {adj} {thing}.",
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
        "{hero} looked {near1} the {corner1} and {near2} the {corner2}.",
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
        "Finally, {hero} found {hero.their} {elder} {near3} the {corner3}.",
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
        "In {season}, {hero} planted some {seed} {near} the {corner}.",
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
