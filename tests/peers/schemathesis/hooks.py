"""What `run` hands to Schemathesis: which refusals are known, ids for the boundary values, and a few bodies of our own."""

import itertools
import json
import os
import re
import sys
import uuid

import jsonschema_rs
import schemathesis

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from rules import EXAMPLES, NOTHING, RULES  # noqa: E402

with open(os.environ["MUSTER_GIVEN"]) as file:
    GIVEN = json.load(file)
IDS = {name: itertools.cycle(values) for name, values in GIVEN["ids"].items()}
KNOWN = {(operation, place, code) for operation, place, code, _ in RULES}
NEEDED = set()


def short(name):
    return name.replace("/v1/org/{org_id}", "")


def is_positive(case):
    # Our own examples have no word about themselves; `own_examples` makes sure that they fit.
    return case.meta is None or case.meta.generation.mode.is_positive


def needed(*tolerance):
    """Tells `run` which tolerances were needed: there is no hook for the end."""
    if tolerance not in NEEDED:
        NEEDED.add(tolerance)
        with open(GIVEN["needed"], "a") as file:
            file.write(json.dumps(tolerance) + "\n")


@schemathesis.hook("before_add_examples")
def own_examples(context, examples):
    operation = context.operation
    root = operation.schema.raw_schema
    label = short(operation.label)
    parameters = GIVEN["parameters"].get(short(operation.path), {})
    [*names] = parameters
    for wanted, body in EXAMPLES:
        if wanted != label:
            continue
        ids = {key: next(IDS[name]) for key, name in GIVEN["bodies"].get(label, {}).items() if "[" not in key}
        body = {**ids, **body} if operation.method == "post" else body
        declared = root["paths"][operation.path][operation.method]["requestBody"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**declared, "components": root["components"]}, body)
        for values in itertools.product(*(GIVEN["ids"][parameters[name]] for name in names)):
            path = {"org_id": GIVEN["org"], **dict(zip(names, values))}
            examples.append(operation.Case(path_parameters=path, body=body, media_type="application/json"))


@schemathesis.hook("before_call")
def ids_for_boundary_values(context, case, kwargs):
    """Boundary values are made without dictionaries: with ids at random, all of them would meet nothing but 403.

    No request waits for a turn, which would take longer than a client waits. No key of a request is used twice. Deleting
    finds nothing, or the requests that follow would.
    """
    wait = str((case.query or {}).get("wait", ""))
    if wait.isdigit() and int(wait) <= 25:
        case.query["wait"] = 0
    if is_positive(case) and "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = str(uuid.uuid4())
    if case.method.upper() == "DELETE" and is_positive(case) and "/whitelist/" not in case.operation.path:
        for parameter in GIVEN["parameters"][short(case.operation.path)]:
            case.path_parameters[parameter] = NOTHING
        return
    if case.meta is None or not is_positive(case) or case.meta.phase.name.value != "coverage":
        return
    case.path_parameters["org_id"] = GIVEN["org"]
    for parameter, name in GIVEN["parameters"].get(short(case.operation.path), {}).items():
        case.path_parameters[parameter] = next(IDS[name])


def problem_errors(response):
    body = response.json()
    places = [(error.get("pointer") or error.get("parameter") or "", error["code"]) for error in body.get("errors", [])]
    return [(re.sub(r"/\d+(?=/|$)", "/#", place), code) for place, code in places]


@schemathesis.check
def only_known_rules_refuse_what_fits(ctx, response, case):
    if not is_positive(case):
        return
    if response.status_code in GIVEN["state"]:
        needed(response.status_code)
    if response.status_code != 422:
        return
    label = short(case.operation.label)
    errors = [(label, *error) for error in problem_errors(response)]
    for error in KNOWN.intersection(errors):
        needed(*error)
    unknown = [error for error in errors if error not in KNOWN]
    assert errors and not unknown, f"{label} refuses what fits: {unknown or response.text}"
