"""Makes the tables of README.md."""

import statistics


def spread(values, digits):
    """Formats the median and range of the runs."""
    middle, low, high = (f"{v:.{digits}f}" for v in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def rows(asked):
    """Returns the rows: name, digits, function of a run, and the feature that it needs."""
    answerable = sum(bool(q["documents"]) for q in asked)

    def each(summary, key):
        return lambda run: summary([a[key] for a in run["answers"]])

    def refused(answerable):
        return lambda run: sum(a["refused"] for a in run["answers"] if a["answerable"] == answerable)

    def early(run):
        return statistics.mean([a["before"] for a in run["answers"] if not a["refused"]] or [0])

    mean, median = statistics.mean, statistics.median
    return [
        ("Reading the folder in, s", 1, lambda run: run["ingest"], None),
        ("… work of the processors, s", 1, lambda run: run["ingest_work"], None),
        ("… requests for vectors", 0, lambda run: run["vector_calls"], None),
        ("… most memory, MB", 0, lambda run: run["ingest_memory"] / 1e6, None),
        ("From the start of the program to the end of its first answer, s", 1, lambda run: run["start"], None),
        ("… work of the processors, s", 1, lambda run: run["start_work"], None),
        ("First word of an answer, s", 2, each(median, "first"), None),
        ("Whole answer, s", 2, each(median, "total"), None),
        ("… of it not waiting for the model, s", 2, each(median, "own"), None),
        ("… work of the processors, s", 2, lambda run: run["work"], None),
        ("Calls to the model, a question", 1, each(mean, "calls"), None),
        ("… of them to judge passages or statements", 1, each(mean, "judges"), "gate"),
        ("… of them begun before the first word, where there is an answer", 1, early, None),
        ("Tokens in, a question", 0, each(mean, "tokens_in"), None),
        ("Tokens out, a question", 0, each(mean, "tokens_out"), None),
        ("Most memory while answering, MB", 0, lambda run: run["memory"] / 1e6, None),
        ("Installed, MB", 0, lambda run: run["size"] / 1e6, None),
        (f"Answers with the expected words, of {answerable}", 0, each(sum, "holds"), None),
        (f"Answers with the right sources, of {answerable}", 0, each(sum, "right"), None),
        ("Documents listed as sources", 0, each(sum, "listed"), None),
        ("… that do not hold the answer", 0, each(sum, "wrong"), None),
        ("… of these, whose passages do not have its words either", 0, each(sum, "empty"), None),
        ("… that nothing in the answer comes from", 0, each(sum, "unused"), None),
        (f"Refused, of {len(asked) - answerable} questions without an answer", 0, refused(False), None),
        (f"Refused, of {answerable} with one", 0, refused(True), None),
        ("Numbers in the answers", 0, each(sum, "marks"), "citations"),
        ("… that lead nowhere", 0, each(sum, "nowhere"), "citations"),
        ("Answers that differ from what the model wrote, marks aside", 0, each(sum, "changed"), None),
        ("… characters lost", 0, each(sum, "lost"), None),
        ("… characters added", 0, each(sum, "added"), None),
    ]


def table(results, asked):
    """Yields the cells of each row of the main table."""
    systems = [system for system, _ in results]
    runs = len(results[0][1])
    yield [f"{len(asked)} questions, median of {runs} runs (range)", *(system.name for system in systems)]
    yield ["---"] * (len(systems) + 1)
    for name, digits, figure, feature in rows(asked):
        cells = (
            system.instead.get(feature) or spread([figure(run) for run in runs], digits) for system, runs in results
        )
        yield [name, *cells]


def brief(runs):
    """Returns the cells of a row with the figures that the gate decides, by run."""

    def each(figure):
        values = [figure(run["answers"]) for run in runs]
        return values[0] if len(set(values)) == 1 else ", ".join(values)

    def total(key):
        return lambda answers: str(sum(a[key] for a in answers))

    def refused(answers):
        missed = [sum(a["refused"] for a in answers if a["answerable"] == answerable) for answerable in (False, True)]
        return f"{missed[0]} / {missed[1]}"

    def mean(key, digits):
        return lambda answers: f"{statistics.mean(a[key] for a in answers):.{digits}f}"

    def wrong(answers):
        return f"{total('wrong')(answers)} of {total('listed')(answers)}"

    figures = (total("holds"), total("right"), wrong, refused, mean("tokens_in", 0), mean("calls", 1))
    return [each(figure) for figure in figures]


def head(first, asked, more=()):
    """Yields the head of a table of brief rows."""
    answerable = sum(bool(q["documents"]) for q in asked)
    cells = [
        first,
        f"expected words, of {answerable}",
        "right sources",
        "sources that do not hold the answer",
        f"refused of {len(asked) - answerable} / of {answerable}",
        "tokens in",
        "calls",
        *more,
    ]
    yield cells
    yield ["---"] * len(cells)


def modes(results, asked):
    """Yields the cells of each row of the table of Ibid's gates."""
    yield from head(f"{len(asked)} questions, each of {len(results[0][1])} runs where they differ", asked)
    for system, runs in results:
        yield [f"`{' '.join(system.serve) or 'the default'}`", *brief(runs)]


def errors(results, asked):
    """Yields the cells of each row of the table of error rates: of the released Ibid,
    and of the one without an encoder, a run for each seed."""
    more = ["without the encoder: words", "right sources", "wrong sources", "refused"]
    yield from head("wrong verdicts / quoted off-topic sentences", asked, more)
    for name, released, plain in results:
        yield [name, *brief(released), *brief(plain)[:4]]
