"""The rows of the bench: every promise about speed and size in one table, and the judgement of it."""

import dataclasses
import operator

MIB = 1 << 20


@dataclasses.dataclass(frozen=True)
class Row:
    """One line of the table: the quantity `of` (its own name if empty), compared or not.

    limit_on says what `op limit` judges: the ratio to the reference, or the p50 (or sole) value.
    """

    name: str
    of: str = ""
    reference: str = ""
    limit_on: str = ""
    op: str = ""
    limit: float = 0
    unit: str = "us"

    @property
    def quantity(self):
        return self.of or self.name


# Rows without `op` only inform.
ROWS = (
    Row("spawn"),
    Row("vfork", reference="spawn"),
    Row("floor"),
    Row("floor_nonet", reference="floor"),
    Row("floor_tmpfs", reference="floor"),
    Row("floor_rate", unit="1/s"),
    Row("floor_nonet_rate", unit="1/s"),
    Row("bwrap", reference="floor"),
    Row("cycle", reference="floor", limit_on="ratio", op="<=", limit=1.0),
    Row("cycle_nonet", reference="floor_nonet"),
    Row("cycle_vs_bwrap", of="cycle", reference="bwrap", limit_on="ratio", op="<", limit=1.0),
    Row("docker_run", reference="cycle", limit_on="ratio", op=">=", limit=70),
    Row("docker_run_nonet", reference="cycle"),
    Row("create", reference="floor"),
    Row("exec", reference="spawn", limit_on="ratio", op="<=", limit=2.0),
    Row("destroy", limit_on="value", op="<=", limit=2000),
    Row("sustained", reference="floor_rate", limit_on="ratio", op=">=", limit=0.98, unit="1/s"),
    Row("sustained_nonet", reference="floor_nonet_rate", unit="1/s"),
    Row("burst100"),
    Row("burst100_failures", limit_on="value", op="<=", limit=0, unit="count"),
    Row("burst100_total", reference="burst100_serial", limit_on="ratio", op="<=", limit=1.3),
    Row("burst100_p99", reference="burst100", limit_on="ratio", op="<=", limit=5),
    Row("idle1000", limit_on="value", op="<=", limit=MIB, unit="bytes"),
    Row("idle1000_alive", limit_on="value", op=">=", limit=1000, unit="count"),
    Row("launcher_rss", limit_on="value", op="<=", limit=4 * MIB, unit="bytes"),
    Row("init_private", limit_on="value", op="<=", limit=400 << 10, unit="bytes"),
    Row("curve_1"),
    Row("curve_10", reference="curve_1"),
    Row("curve_100", reference="curve_1"),
    Row("curve_300", reference="curve_1"),
    Row("curve_1000", reference="curve_1", limit_on="ratio", op="<=", limit=1.3),
    Row("lives10000_memcgs", limit_on="value", op="<=", limit=16, unit="count"),
    Row("lives10000_slab", limit_on="value", op="<=", limit=16 * MIB, unit="bytes"),
    # Through the API.
    Row("http_cycle", reference="floor", limit_on="ratio", op="<=", limit=1.3),
    Row("http_cycle_vs_bwrap", of="http_cycle", reference="bwrap", limit_on="ratio", op="<",
        limit=1.0),
    Row("http_docker_run", of="docker_run", reference="http_cycle", limit_on="ratio", op=">=",
        limit=70),
    Row("http_claim", limit_on="value", op="<=", limit=1000),
    Row("http_claim_output", reference="spawn", limit_on="ratio", op="<=", limit=2.5),
    Row("http_exec", reference="spawn", limit_on="ratio", op="<=", limit=2.0),
    Row("http_destroy", limit_on="value", op="<=", limit=2000),
    Row("http_sustained", reference="floor_rate", limit_on="ratio", op=">=", limit=0.98,
        unit="1/s"),
    Row("http_burst100"),
    Row("http_burst100_failures", limit_on="value", op="<=", limit=0, unit="count"),
    Row("http_burst100_total", reference="http_burst100_serial", limit_on="ratio", op="<=",
        limit=1.3),
    Row("http_burst100_p99", reference="http_burst100", limit_on="ratio", op="<=", limit=5),
    Row("http_idle1000", limit_on="value", op="<=", limit=MIB, unit="bytes"),
    Row("http_idle1000_alive", limit_on="value", op=">=", limit=1000, unit="count"),
    Row("http_idle1000_cpu", limit_on="value", op="<=", limit=1, unit="%"),
    Row("http_streams200", limit_on="value", op=">=", limit=200, unit="count"),
    Row("http_first_byte", limit_on="value", op="<=", limit=2000),
    Row("http_stream_rate", reference="http_cat", limit_on="ratio", op=">=", limit=0.5,
        unit="MiB/s"),
    Row("http_stream_rss", limit_on="value", op="<=", limit=16 * MIB, unit="bytes"),
    Row("http_upload", reference="http_upload_plain", limit_on="ratio", op=">=", limit=0.5,
        unit="MiB/s"),
    Row("http_upload_rss", limit_on="value", op="<=", limit=16 * MIB, unit="bytes"),
    Row("http_download", reference="http_download_plain", limit_on="ratio", op=">=", limit=0.5,
        unit="MiB/s"),
    Row("http_download_rss", limit_on="value", op="<=", limit=16 * MIB, unit="bytes"),
    Row("http_hello", unit="1/s"),
    Row("http_health", reference="http_hello", limit_on="ratio", op=">=", limit=0.5, unit="1/s"),
    Row("http_health_busy", limit_on="value", op=">=", limit=10000, unit="1/s"),
    Row("http_server_rss", limit_on="value", op="<=", limit=25 * MIB, unit="bytes"),
    Row("http_storm_rss", limit_on="value", op="<=", limit=4 * MIB, unit="bytes"),
)

OPERATORS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge}


def chosen(names):
    """The rows of those names, in the order of ROWS; all of them when no name is given."""
    unknown = sorted(set(names) - {row.name for row in ROWS})
    if unknown:
        raise ValueError("there is no row " + ", ".join(unknown))
    return [row for row in ROWS if not names or row.name in names]


def judge(bench, selected=ROWS):
    """The rows of bench.json, in the order of ROWS."""
    rows = []
    for row in selected:
        quantity = bench.quantities.get(row.quantity)
        reference = bench.quantities.get(row.reference)
        result = {"name": row.name, "p50": None, "p99": None, "unit": row.unit, "n": 0,
                  "reference": row.reference or None, "reference_p50": None, "ratio": None,
                  "target": target_text(row), "met": None, "skipped": None}
        rows.append(result)
        if quantity is None:
            result["skipped"] = bench.skips.get(row.quantity, "not measured")
            continue
        result.update(p50=quantity.p50, p99=quantity.p99, n=quantity.n)
        if reference is not None:
            result["reference_p50"] = reference.p50
            result["ratio"] = quantity.p50 / reference.p50 if reference.p50 else None
        judged = result["ratio"] if row.limit_on == "ratio" else quantity.p50
        if row.op and judged is None:
            result["skipped"] = f"no {row.reference}: " + bench.skips.get(row.reference, "it is 0")
        elif row.op:
            result["met"] = OPERATORS[row.op](judged, row.limit)
    return rows


def target_text(row):
    if not row.op:
        return None
    if row.limit_on == "ratio":
        return f"{row.op} {row.limit:g}x"
    return f"{row.op} {amount(row.limit, row.unit)}"


def amount(value, unit):
    """A number with its unit, for people."""
    if value is None:
        return ""
    if unit == "us":
        return f"{value / 1000:.2f} ms" if value >= 1000 else f"{value:.0f} us"
    if unit == "bytes":
        return f"{value / MIB:.2f} MiB" if abs(value) >= MIB else f"{value / 1024:.0f} KiB"
    if unit == "1/s":
        return f"{value:.0f}/s"
    if unit in ("MiB/s", "%"):
        return f"{value:.3g} {unit}"
    return f"{value:g}"


def failed_check(rows):
    """Missed targets, and targets that were not judged although nothing but our own build lacked.

    A missing bwrap or docker is a stated skip and no failure; so is what --quick leaves out."""
    foreign = ("bubblewrap is not installed", "docker.io is not installed",
               "wrk is not installed")
    excused = ("left out by --quick", *foreign)
    return [row["name"] for row in rows if row["target"] and row["met"] is not True
            and not (row["met"] is None and row["skipped"].endswith(excused))]
