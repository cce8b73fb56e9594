"""Source code: the language of 25 lines, by the pretrained network with which VS Code guesses it."""

from __future__ import annotations

from udcp_dsl.datasets.kept_rows import KeptRows, kept


def source_code(seed: int = 0) -> KeptRows:
    """VS Code's language detector on 4,905 snippets in 54 languages; it is right for 81 % of them.

    There are at most 5 snippets per file and 200 per language. The package holds the network's probabilities, not the
    snippets.

    Parameters
    ----------
    seed : int, default 0
        Random seed for the order of the rows.

    Returns
    -------
    KeptRows
        Probabilities and true labels.

    Examples
    --------
    >>> data = source_code()
    >>> data.probs.shape, data.labels[data.y[0]] in data.labels
    ((4905, 54), True)
    """
    origin = "@vscode/vscode-languagedetection 1.0.23 on snippets of 25 lines"
    return kept("source_code", "code/languages", origin, seed)
