"""What is spoken.

The server speaks sentence by sentence; the library merges sentences up to 50 tokens. Here both come
to the same segments (PAIR's two sentences do not fit into 50 tokens), so that all make the same
audio: 8.7 seconds of SENTENCE and 21.8 of PAIR, with the model of `benchmarks.model`.
"""

SENTENCE = "The train to the coast leaves at nine from the second platform."

PAIR = (
    "The old man climbed the stairs of the house every evening before the end of the day. "
    "From the window at the top he could see all of the boats come home, one after the other."
)

SHORT = "Yes, of course."
