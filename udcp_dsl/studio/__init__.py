"""The studio: a page on localhost to write a loss with its sets in view (`udcp studio`, the extra `studio`).

The state lives here, not in the page. A change of it (a text, a slider, a bar that is dragged) is answered at once;
threads work out what follows from it, and the page asks for what is new.
"""
