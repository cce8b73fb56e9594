"""The studio: a page on localhost to write a loss with its sets in view (`udcp studio`, the extra `studio`).

The state is kept here, not in the page. A change (a text, a slider, a dragged bar) is answered at once; threads compute
its consequences, and the page asks for what is new.
"""
