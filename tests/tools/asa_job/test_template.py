"""Reading an ARM template: where a job's parts may be, and its expressions."""

import json
from pathlib import Path
from typing import Any

import pytest

from recapture.errors import DefinitionError
from recapture.tools.asa_job import read_job
from recapture.tools.asa_job.expressions import Expansion, TemplateScope
from recapture.tools.asa_job.job import EventHub
from tests.tools.asa_job.jobs import (
    PLAIN_QUERY,
    SECRET,
    event_hub,
    job_template,
    parts,
    refused,
    template,
    template_input,
    template_job,
    template_output,
)

JOB = "Microsoft.StreamAnalytics/streamingjobs"
FUNCTION = {"type": "Scalar", "properties": {"binding": {"type": "Microsoft.StreamAnalytics/JavascriptUdf"}}}


def sibling(kind: str, name: str, properties: dict[str, Any]) -> dict[str, Any]:
    full = f"[concat(parameters('streamingjobs_contoso_name'), '/{name}')]"
    return {"type": f"{JOB}/{kind}", "name": full, "properties": properties}


def bare_job(**more: Any) -> dict[str, Any]:
    return template_job(inputs=[], outputs=[], transformation=None) | more


def refused_variables(folder: Path, locale: str, variables: dict[str, Any]) -> str:
    """Return the error for a template with these variables, one of which is the locale of its job."""
    return refused(template(folder / "t.json", template_job(dataLocale=locale), variables=variables))


def test_a_job_is_read_with_its_parts_in_its_properties(tmp_path: Path) -> None:
    job = read_job(job_template(tmp_path))
    assert (job.name, job.query, job.origin) == ("contoso-telemetry", PLAIN_QUERY, "t.json")
    assert (job.settings_where, list(job.settings.model_dump().values())) == (
        "t.json, contoso-telemetry",
        ["Drop", 10, None, "Stop", "1.2", None],
    )
    assert [(part.alias, part.where, part.source) for part in job.inputs] == [
        ("telemetry", "t.json, inputs/telemetry", EventHub("contoso", "telemetry"))
    ]
    assert [part.alias for part in job.outputs] == ["aggregates"]
    assert job.unread == ()


def test_an_answer_of_the_rest_api_is_read_without_expressions(tmp_path: Path) -> None:
    """The answer is made up in the form of "Streaming Jobs - Get" (Stream Analytics REST API), not recorded."""
    query = "[a] -- no expression [b]"
    transformation = {"name": "main", "type": f"{JOB}/transformations", "properties": {"query": query, "etag": "e"}}
    answer = bare_job(name="contoso-telemetry", id="/subscriptions/1", location="West US")
    answer["properties"] |= {
        "inputs": [{"name": "telemetry", "properties": template_input()}],
        "transformation": transformation,
        "jobState": "Running",
    }
    file = tmp_path / "job.json"
    file.write_text(json.dumps(answer))
    job = read_job(file)
    assert (job.name, job.query, [part.alias for part in job.inputs]) == ("contoso-telemetry", query, ["telemetry"])


def test_parts_next_to_the_job_or_in_its_resources_give_the_same_job(tmp_path: Path) -> None:
    query = {"streamingUnits": 1, "query": PLAIN_QUERY.replace("\n", "\r\n")}
    resources = [
        ("inputs", "telemetry", template_input()),
        ("outputs", "aggregates", template_output()),
        ("functions", "classify", FUNCTION),
        ("transformations", "t", query),
    ]
    next_to_job = read_job(template(tmp_path / "t.json", bare_job(), *(sibling(*part) for part in resources)))
    own = [{"type": kind, "name": name, "properties": properties} for kind, name, properties in resources]
    in_resources = read_job(template(tmp_path / "t.json", bare_job(resources=own)))
    assert next_to_job == in_resources
    assert (next_to_job.query, next_to_job.query_where) == (PLAIN_QUERY, "t.json, transformations/t")
    in_properties = read_job(job_template(tmp_path))
    assert (next_to_job.inputs, next_to_job.outputs) == (in_properties.inputs, in_properties.outputs)
    assert [function.language for function in next_to_job.functions] == ["JavaScript"]


def test_a_resource_of_an_unknown_kind_is_reported(tmp_path: Path) -> None:
    job = read_job(template(tmp_path / "t.json", template_job(), sibling("privateEndpoints", "p", {})))
    assert job.unread == ("t.json, contoso-telemetry/p",)


def test_a_template_is_read_in_any_letter_case(tmp_path: Path) -> None:
    resource = template_job()
    resource["type"] = "microsoft.streamanalytics/StreamingJobs"
    properties = resource["properties"]
    properties["EventsOutOfOrderMaxDelayInSeconds"] = properties.pop("eventsOutOfOrderMaxDelayInSeconds")
    properties["eventsOutOfOrderPolicy"] = "drop"
    settings = read_job(template(tmp_path / "t.json", resource)).settings
    assert settings.events_out_of_order_policy == "Drop"
    assert settings.events_out_of_order_max_delay_in_seconds == 10


def test_a_template_of_symbolic_names_and_nested_deployments_is_read(tmp_path: Path) -> None:
    inner = {
        "parameters": {"name": {"type": "string"}, "hub": {"type": "string", "defaultValue": "telemetry"}},
        "resources": {"job": template_job() | {"name": "[parameters('name')]"}},
    }
    deployment = {
        "type": "Microsoft.Resources/deployments",
        "name": "streams",
        "properties": {"template": inner, "parameters": {"name": {"value": "[concat('from-', 'outside')]"}}},
    }
    assert read_job(template(tmp_path / "t.json", deployment)).name == "from-outside"


def parameters(file: Path, **values: Any) -> None:
    """Write the parameters file of a template."""
    named = {name: {"value": value} for name, value in values.items()}
    file.with_name(f"{file.stem}.parameters.json").write_text(json.dumps({"parameters": named}))


def test_the_parameters_file_next_to_a_template_gives_the_values_of_its_parameters(tmp_path: Path) -> None:
    source = event_hub(eventHubName="[parameters('Input_telemetry_eventHubName')]")
    inputs = parts(telemetry=template_input(datasource=source))
    file = template(
        tmp_path / "contoso.JobTemplate.json",
        template_job(inputs=inputs, eventsLateArrivalMaxDelayInSeconds="[parameters('Late')]"),
        parameters={
            "streamingjobs_contoso_name": {"type": "string"},
            "Input_telemetry_eventHubName": {"type": "string"},
            "Late": {"type": "int", "defaultValue": 5},
        },
    )
    open_job = read_job(file)
    late = open_job.settings.events_late_arrival_max_delay_in_seconds
    assert (open_job.name, late) == ("${streamingjobs_contoso_name}", 5)
    parameters(file, streamingJobs_contoso_name="named", Input_telemetry_eventHubName="telemetry", Late=600)
    job = read_job(file)
    assert (job.name, job.settings.events_late_arrival_max_delay_in_seconds) == ("named", 600)
    assert job.inputs[0].source == EventHub(None, "telemetry")


def test_null_in_a_parameters_file_and_secure_parameters_stay_open(tmp_path: Path) -> None:
    file = template(
        tmp_path / "t.json",
        template_job(),
        parameters={"streamingjobs_contoso_name": {"type": "securestring"}, "other": {"type": "string"}},
    )
    parameters(file, streamingjobs_contoso_name=SECRET, other=None)
    assert read_job(file).name == "${streamingjobs_contoso_name}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "t.parameters.json:1:2: not JSON: Expecting property name enclosed in double quotes"),
        ('{"parameters": 7}', "t.parameters.json: parameters: should be an object"),
    ],
)
def test_damage_to_a_parameters_file_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = job_template(tmp_path)
    file.with_name("t.parameters.json").write_text(text)
    assert refused(file) == message


def test_a_parameters_file_that_leads_out_of_the_template_s_folder_is_not_read(tmp_path: Path) -> None:
    tmp_path.joinpath("job").mkdir()
    file = job_template(tmp_path / "job")
    tmp_path.joinpath("outside").write_text('{"parameters": {}}')
    file.with_name("t.parameters.json").symlink_to(tmp_path / "outside")
    assert refused(file).startswith("t.parameters.json: leads out of the job's folder")


def test_of_several_jobs_one_is_chosen(tmp_path: Path) -> None:
    second = template_job() | {"name": "second"}
    parts = sibling("inputs", "more", template_input())
    file = template(tmp_path / "t.json", template_job(), second, parts)
    assert refused(file) == "t.json: has several jobs, contoso-telemetry, second: choose one with --job NAME"
    assert refused(file, "third") == "t.json: no job third: choose one of contoso-telemetry, second"
    assert [part.alias for part in read_job(file, "Second").inputs] == ["telemetry"]
    assert [part.alias for part in read_job(file, "contoso-telemetry").inputs] == ["telemetry", "more"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "t.json:1:2: not JSON: Expecting property name enclosed in double quotes"),
        ("[]", "t.json: not an ARM template: it has no resources"),
        ('{"resources": []}', "t.json: the template has no Microsoft.StreamAnalytics/streamingjobs resource"),
        ('{"resources": 7}', "t.json: resources: should be a list"),
        ('{"resources": [7]}', "t.json, resources: this should be an object"),
        ('{"resources": [{"type": 7}]}', "t.json, resources: type: should be a string"),
        ('{"resources": [], "parameters": []}', "t.json: parameters: should be an object"),
    ],
)
def test_damage_is_one_line_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "t.json"
    file.write_text(text)
    assert refused(file) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"transformation": None}, "t.json: the job contoso-telemetry has no query: export it with its transformation"),
        ({"inputs": 7}, "t.json, contoso-telemetry: inputs: should be a list"),
        ({"inputs": [{"name": 7}]}, "t.json, contoso-telemetry: inputs.0.name: should be a string"),
        (
            {"inputs": [{"name": "a", "properties": {"datasource": {"properties": {"eventHubName": [1]}}}}]},
            "t.json, inputs/a: datasource.properties.eventHubName: should be a string",
        ),
        (
            {"eventsOutOfOrderMaxDelayInSeconds": {}},
            "t.json, contoso-telemetry: eventsOutOfOrderMaxDelayInSeconds: should be an integer",
        ),
    ],
)
def test_a_malformed_job_is_one_line_with_its_place(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    assert refused(job_template(tmp_path, **changes)) == message


SCOPE = TemplateScope(
    Expansion("t.json"),
    parameters={
        "hub": {"type": "string", "defaultValue": "telemetry"},
        "open": {"type": "string"},
        "empty": {"type": "string", "defaultValue": ""},
        "late": {"type": "int", "defaultValue": 600},
        "key": {"type": "SecureString", "defaultValue": SECRET},
        "names": {"type": "object", "defaultValue": {"Hub": ["first", "second"]}},
        "indirect": {"type": "string", "defaultValue": "[variables('space')]"},
        "self": {"type": "string", "defaultValue": "[concat(parameters('self'))]"},
    },
    variables={"space": "[concat('ns-', parameters('hub'))]"},
)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("plain", "plain"),
        ("[[not an expression]", "[not an expression]"),
        ("[parameters('hub')]", "telemetry"),
        ("[ PARAMETERS( 'HUB' ) ]", "telemetry"),
        ("[parameters('late')]", 600),
        ("[variables('space')]", "ns-telemetry"),
        ("[parameters('indirect')]", "ns-telemetry"),
        ("[concat('it''s ', parameters('late'), '/', variables('space'))]", "it's 600/ns-telemetry"),
        ("[format('{0}/{1}-{0}', 'a', parameters('hub'))]", "a/telemetry-a"),
        ("[toUpper(concat('a', toLower('B')))]", "AB"),
        ("[int('7')]", 7),
        ("[string(trim(' x '))]", "x"),
        ("[parameters('names').hub[1]]", "second"),
        ("[parameters('names')['hub'][0]]", "first"),
        ("[parameters('open')]", "${open}"),
        ("[parameters('empty')]", "${empty}"),
        ("[parameters('nowhere')]", "${nowhere}"),
        ("[parameters('key')]", "${key}"),
        ("[concat('ns-', parameters('open'))]", "ns-${open}"),
        ("[toLower(parameters('open'))]", "${open}"),
        ("[variables('gone')]", "${gone}"),
        ("[resourceGroup().location]", "${resourceGroup}"),
        ("[listKeys(resourceId('a/b', 'c'), '2017').key1]", "${listKeys}"),
        ("[concat('x', uniqueString(resourceGroup().id))]", "x${uniqueString}"),
        ("[parameters('names').absent]", "${absent}"),
        ("[concat('unclosed]", "${expression}"),
        ("[concat('a'", "[concat('a'"),
        ("[concat('a',)]", "${expression}"),
        ("[concat('a') 'b']", "${expression}"),
        ("[format('{3}', 'a')]", "${expression}"),
        ("[]", "${expression}"),
    ],
)
def test_an_expression_gives_its_value_or_a_named_placeholder(expression: str, value: object) -> None:
    assert SCOPE.resolve({"deep": [expression]}) == {"deep": [value]}


def test_a_parameter_that_is_defined_by_itself_is_refused() -> None:
    with pytest.raises(DefinitionError, match=r"^t\.json: a parameter or variable refers to itself"):
        SCOPE.resolve("[parameters('self')]")


def test_each_variable_is_evaluated_once() -> None:
    doubled = {f"v{n}": f"[format('{{0}}{{0}}', variables('v{n - 1}'))]" for n in range(1, 21)}
    lists = {f"l{n}": [f"[variables('l{n - 1}')[0]]", f"[variables('l{n - 1}')[1]]"] for n in range(1, 41)}
    variables = {"v0": "", "l0": ["a", "b"], **doubled, **lists}
    scope = TemplateScope(Expansion("t.json"), variables=variables)
    assert scope.resolve(["[variables('v20')]", "[variables('l40')]"]) == ["", ["a", "b"]]


@pytest.mark.parametrize(
    "definition",
    ["[concat(variables('v{0}'), variables('v{0}'))]", ["[variables('v{0}')]", {"a": "[variables('v{0}')]"}]],
)
def test_variables_that_double_are_refused(tmp_path: Path, definition: Any) -> None:
    variables = {f"v{n}": json.loads(json.dumps(definition).replace("{0}", str(n - 1))) for n in range(1, 41)}
    assert refused_variables(tmp_path, "[variables('v40')]", {"v0": "x", **variables}) == (
        "t.json: the expressions make values of more than 8,388,608 characters: simplify the variables and parameters "
        "that contain each other"
    )


def test_a_large_value_is_not_copied_without_bound(tmp_path: Path) -> None:
    variables = {"large": "x" * 1_000_000, "many": ["[toUpper(variables('large'))]"] * 20}
    error = refused_variables(tmp_path, "[variables('many')[0]]", variables)
    assert "the expressions make values of more than 8,388,608 characters" in error


def test_variables_in_too_many_levels_are_refused(tmp_path: Path) -> None:
    variables = {"v0": "x"} | {f"v{n}": f"[variables('v{n - 1}')]" for n in range(1, 101)}
    assert refused_variables(tmp_path, "[variables('v100')]", variables) == (
        "t.json: variables and parameters refer to each other in more than 50 levels: simplify the template"
    )


def test_an_expression_of_blanks_or_digits_is_not_evaluated() -> None:
    expressions = [f"[concat('a',{' ' * 200_000}!)]", f"[int('{'9' * 5000}')]", f"[{'9' * 5000}]"]
    assert SCOPE.resolve(expressions) == ["${expression}"] * 3


def test_deep_nesting_is_one_line(tmp_path: Path) -> None:
    file = job_template(tmp_path, dataLocale="MARK")
    file.write_text(file.read_text().replace('"MARK"', '{"a":' * 800 + "1" + "}" * 800))
    assert refused(file) == "t.json: JSON is nested too deeply"


def test_too_many_parts_are_refused(tmp_path: Path) -> None:
    inputs = parts(**{f"i{number}": template_input() for number in range(61)})
    file = job_template(tmp_path, inputs=inputs)
    assert refused(file) == "t.json: the job has 61 inputs: at most 60 are supported"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            " " * 512 * 1024 + "x",
            "t.json, contoso-telemetry: the query has 524,289 characters: at most 524,288 are supported",
        ),
        (
            "".join(f" INTO o{n}" for n in range(61)),
            "t.json: the job has 61 outputs in its query: at most 60 are supported",
        ),
    ],
)
def test_a_query_that_is_too_large_is_refused(tmp_path: Path, query: str, message: str) -> None:
    transformation = {"name": "t", "properties": {"query": query}}
    assert refused(job_template(tmp_path, transformation=transformation)) == message
