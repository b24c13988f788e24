"""What is spoken.

The server speaks sentence by sentence; the library merges sentences up to 50 tokens. In SENTENCE
and PAIR both come to the same segments (PAIR's two sentences do not fit into 50 tokens), so that
they make the same audio; in PARAGRAPH they do not.
"""

SENTENCE = "The train to the coast leaves at nine from the second platform."

PAIR = (
    "The old man climbed the stairs of the house every evening before the end of the day. "
    "From the window at the top he could see all of the boats come home, one after the other."
)

PARAGRAPH = (
    "Nobody knew how long the shop had been there. It sold clocks. Some of them were older than "
    "the town itself, and the owner could tell a story about each. On Sundays he wound them all. "
    "It took him the whole morning. Then he sat down and listened."
)

SHORT = "Yes, of course."
