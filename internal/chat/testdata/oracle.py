"""Fills in what Python makes of the templates in golden files.

    pip install jinja2==3.1.6
    python oracle.py FILE.jsonl...

Each line of a file is an object with "template", or "file" for a template in templates/. The line may have
"variables"; else it uses those of the first line, which has no template, or with "conversation" those of that name in
conversations.json. The script replaces "output", "error_type" and "error" by what jinja2 says, set up as transformers
does it, with the clock at 2025-03-09 14:05:06. Tests only read the result and need no Python.
"""

import copy
import datetime
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2025, 3, 9, 14, 5, 6)
HERE = pathlib.Path(__file__).parent


class Generation(jinja2.ext.Extension):
    """The generation tag of transformers, which marks what the model is to write."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols]
    )
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(env, template, variables):
    """The fields that tell the outcome."""
    stage = "parse"
    try:
        t = env.from_string(template)
        stage = "render"
        output = t.render(**copy.deepcopy(variables))
        output.encode()
        return {"output": output}
    except Exception as e:
        return {"error_type": type(e).__name__, "error": str(e), "stage": stage}


def update(path):
    env = environment()
    conversations = {}
    if (HERE / "conversations.json").exists():
        conversations = json.loads((HERE / "conversations.json").read_text())
    shared, lines = {}, []
    for line in path.read_text().rstrip("\n").split("\n"):
        case = json.loads(line)
        for old in ("output", "error_type", "error", "stage"):
            case.pop(old, None)
        if "template" not in case and "file" not in case:
            shared = case["variables"]
        else:
            source = case.get("template")
            if source is None:
                source = (HERE / "templates" / case["file"]).read_text()
            variables = shared
            if "conversation" in case:
                variables = conversations[case["conversation"]]
            if "variables" in case:
                variables = case["variables"]
            case |= render(env, source, variables)
        lines.append(json.dumps(case, ensure_ascii=False))
    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(pathlib.Path(name))
