"""Plots of the benchmark thesis, in the manner of the dissertation's figures 6.13 to 6.26: a panel for each pair, then ratios over all pairs."""
import textwrap

COLORS = {"SS": "#bbbbbb", "rt": "#4477aa", "idle": "#ccbb44", "none": "#ee6677", "sleeper": "#228833", "reserve-5%": "#66ccee", "reserve-5%-of-100ms": "#aa3377", "reserve-1%": "#332288"}
ROWS = [("thesis.first", "first"), ("thesis.later", "later"), ("thesis.makespan", "both")]
RATIOS = {"thesis.first_ratio": "TS : SS of the first job", "thesis.makespan_ratio": "TS : SS of both together",
          "thesis.first_cpu_ratio": "TS : SS of the first job's CPU time",
          "thesis.later_cycles": "share of the left cycles that the later job got",
          "thesis.elmer_cycles": "share of the left cycles that Elmer's own processes took"}

OF_EP = {"thesis.later_cycles", "thesis.elmer_cycles"}  # shares, of pairs whose later job is EP


def pair(record):
    """What tells pairs apart, for people."""
    p = record["parameters"]
    return f"{p['first']} + {p['later']}" + (f", {p['places']}" if "places" in p else "")


def way(record):
    """Which bar of a group this is: one after the other, or both at once in one of the modes."""
    p = record["parameters"]
    return "SS" if p.get("how") == "SS" else p["mode"]


def grouped(axes, records, group_of, groups):
    """Bars in groups, one of each way; whiskers from the least to the greatest, a black line where the bar to meet is."""
    ways = ways_of(records)
    width = 0.8 / len(ways)
    for record in records:
        x = groups.index(group_of(record)) + (ways.index(way(record)) - (len(ways) - 1) / 2) * width
        reach = [[record["median"] - record["min"]], [record["max"] - record["median"]]]
        axes.bar(x, record["median"], width, yerr=reach, capsize=2, color=COLORS[way(record)], error_kw={"linewidth": 0.8})
        if "bar" in record:
            limit = next(iter(record["bar"].values()))
            axes.plot([x - width / 2, x + width / 2], [limit, limit], color="black", linewidth=1.5)
    axes.spines[["top", "right"]].set_visible(False)


def legend(axes, records, **where):
    from matplotlib.patches import Patch
    names = {"SS": "one after the other (SS)", "rt": "both at once (TS), rt", "idle": "TS, idle", "none": "TS, none (no order)", "sleeper": "TS, rt above a job that sleeps"}
    names |= {name: f"TS, rt, the kernel keeps {name[8:].replace('-', ' ')}" for name in COLORS if name.startswith("reserve-")}
    ways = ways_of(records)
    axes.legend(handles=[Patch(color=COLORS[name], label=names[name]) for name in ways], frameon=False, fontsize=8, **where)


def pairs(pyplot, records):
    """Turnaround of each job and of both, a panel for each pair."""
    records = [record for record in records if record["name"] in dict(ROWS)]
    once = records[0]["parameters"]["mode"]  # SS is the same in all modes but for noise: it is drawn once
    records = [record for record in records if way(record) != "SS" or record["parameters"]["mode"] == once]
    names = list(dict.fromkeys(map(pair, records)))
    columns = min(4, len(names) + 1)
    rows = len(names) // columns + 1  # with room for the legend
    figure, panels = pyplot.subplots(rows, columns, figsize=(3.2 * columns, 2.4 * rows + 0.4), layout="constrained", sharey=True, squeeze=False)
    for axes in panels.flat[len(names):]:
        axes.axis("off")
    for axes, name in zip(panels.flat, names):
        grouped(axes, [record for record in records if pair(record) == name], lambda record: dict(ROWS)[record["name"]], [label for _, label in ROWS])
        axes.set_xticks(range(len(ROWS)), [label for _, label in ROWS])
        axes.set_title(name, fontsize=10)
    for axes in panels[:, 0]:
        axes.set_ylabel("s")
    legend(panels.flat[len(names)], records, loc="center")
    return figure


def ways_of(records):
    return [name for name in COLORS if any(way(record) == name for record in records)]


def dots(axes, records, names):
    """Points with whiskers around a line at 1: a ratio has no length, and a bar that does not begin at 0 would make 1 % look like half."""
    ways = ways_of(records)
    width = 0.8 / len(ways)
    axes.axhline(1, color="#666", linewidth=1)
    seen = [record[end] for record in records for end in ("min", "max")]
    for record in records:
        x = names.index(pair(record)) + (ways.index(way(record)) - (len(ways) - 1) / 2) * width
        whiskers = [[record["median"] - record["min"]], [record["max"] - record["median"]]]
        axes.errorbar(x, record["median"], yerr=whiskers, fmt="o", markersize=4, capsize=2, linewidth=0.8, color=COLORS[way(record)])
        if "bar" in record:
            limit = next(iter(record["bar"].values()))
            axes.plot([x - width / 2, x + width / 2], [limit, limit], color="black", linewidth=1.5)
            seen.append(limit)
    axes.set_ylim(min(0.9, 1 - 1.1 * (1 - min(seen))), max(1.1, 1 + 1.1 * (max(seen) - 1)))  # or noise would fill the picture
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.spines[["top", "right"]].set_visible(False)


def missing(records, name):
    """Pairs and modes that were run and of which this figure is not there."""
    made = {(pair(record), way(record)) for record in records if record["name"] == name}
    run = {(pair(record), way(record)) for record in records if "later" in record["parameters"] and way(record) != "SS"
           and (name not in OF_EP or record["parameters"]["later"] == "ep")}
    return [f"{pair_name} ({mode})" for pair_name, mode in sorted(run - made)]


def ratios(pyplot, records, name):
    """One ratio over all pairs and modes; the share of something is a bar from 0."""
    absent = missing(records, name)
    records = [record for record in records if record["name"] == name]
    names = list(dict.fromkeys(map(pair, records)))
    figure, axes = pyplot.subplots(figsize=(max(5, 1.1 * len(names) + 1.5), 3.4), layout="constrained")
    if name in OF_EP:
        grouped(axes, records, pair, names)
        axes.set_ylim(bottom=0)
    else:
        dots(axes, records, names)
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    said = textwrap.wrap(f"not measured: {', '.join(absent)}", 70) if absent else []
    axes.set_title("\n".join([*textwrap.wrap(f"{name}: {RATIOS[name]}", 70), *said]), fontsize=10, loc="left")
    legend(axes, records, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def figures(pyplot, records):
    """All that there is something for."""
    made = {record["name"] for record in records}
    if made & set(dict(ROWS)):
        yield pairs(pyplot, records)
    for name in RATIOS:
        if name in made:
            yield ratios(pyplot, records, name)


DRAWN = {*dict(ROWS), *RATIOS}
