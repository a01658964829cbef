"""Valid files of kinds, and variants with changes."""

MOOD = """\
# How a review sounds
title = "How content is the reviewer?"
form = "grades"
apart = ["product"]

[[layout]]
style = "question"
fields = ["product"]

[[layout]]
style = "passage"
fields = ["review"]

[[answers]]
code = "+"
name = { en = "Content", de = "Zufrieden" }
meaning = { en = "would buy it again", de = "würde es wieder kaufen" }
key = "a"

[[answers]]
code = "-"
name = "Annoyed"

[options]
gold_share = 0
"""
ACTS = """\
title = "Which concepts is this act about?"
form = "labels"
kept = ["type"]
split = "split"

[vocabulary]
name = "eurovoc"
least = 2
most = 5
beside_broader = "refuse"
right_from = 0.6

[[layout]]
style = "headline"
fields = ["title"]
"""
PIDGIN = """\
base = "language"
labels = ["en", "pcm", "pt-BR", "pt-PT"]

[languages.pcm]
name = "Nigerian Pidgin"
autonym = "Naijá"

[languages.pt-BR]
name = "Brazilian Portuguese"
under = "pt"

[languages.pt-PT]
name = "European Portuguese"
under = "pt"
"""


def mood(old, new):
    assert old in MOOD
    return MOOD.replace(old, new, 1)


def acts(old, new):
    assert old in ACTS
    return ACTS.replace(old, new, 1)


def pidgin(old, new):
    assert old in PIDGIN
    return PIDGIN.replace(old, new, 1)
