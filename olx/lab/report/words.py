"""Format numbers and names for a report."""

import json
import math


def facts(environment: dict, prefix: str = "") -> list[tuple[str, str]]:
    """An environment as pairs of name and value; nested names are joined by dots."""
    pairs = []
    for name, value in environment.items():
        if isinstance(value, dict):
            pairs += facts(value, f"{prefix}{name}.")
        else:
            plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            pairs.append((f"{prefix}{name}", plain))
    return pairs


def configuration(hyperparameters: dict[str, object]) -> str:
    """A configuration as one line of text."""
    return ", ".join(f"{name} = {_value(value)}" for name, value in hyperparameters.items())


def comparator(config: dict) -> str:
    """The comparator of an experiment in words; "" if there is none.

    >>> comparator({"comparator": "best", "radius": 2.0, "learners": []})
    'the best decision in hindsight in the ball of radius 2'
    """
    chosen = config.get("comparator")
    said = {
        None: "",
        "zero": "the decision 0, or equal weights of experts",
        "truth": "the decision that generated the data",
        "best": "the best decision in hindsight",
    }[chosen]
    if chosen == "best" and "radius" in config:
        said += f" in the ball of radius {config['radius']:g}"
    own = [
        f"{one.get('label') or one['name']}: in {_value(one['compare_in'])}"
        for one in config.get("learners", [])
        if one.get("compare_in")
    ]
    return f"{said} ({'; '.join(own)})" if own else said


def plus_minus(mean: float, error: float) -> str:
    """A mean with its standard error, to four digits or as many as the error supports.

    >>> plus_minus(0.123456, 0.0123), plus_minus(0.123456, 1e-6), plus_minus(0.5, float("nan"))
    ('0.123 ± 0.012', '0.1235 ± 1e-06', '0.5')
    """
    if math.isnan(error) or not math.isfinite(mean):
        return short(mean)
    digits = 1 - math.floor(math.log10(error)) if error > 0 else 9
    if 0 <= digits <= 4 - math.floor(math.log10(abs(mean) or 1.0)):
        return f"{mean:.{digits}f} ± {error:.{digits}f}"
    return f"{mean:.4g} ± {error:.1g}"


def short(value: float | None) -> str:
    """A number in a table.

    >>> short(0.1564142), short(2.0), short(None), short(float("inf"))
    ('0.1564', '2', '', 'diverged')
    """
    if value is None or math.isnan(value):
        return ""
    return f"{value:.4g}" if math.isfinite(value) else "diverged"


def seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:,.0f}"


def count(value: float | None) -> str:
    """A large number with its unit.

    >>> count(1234567.0), count(950.0)
    ('1.23 M', '950')
    """
    if value is None or not math.isfinite(value):
        return ""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, dict):
        inner = {name: rest for name, rest in value.items() if name != "name"}
        return f"{value.get('name', '')}({configuration(inner)})"
    return str(value)
