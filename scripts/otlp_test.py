"""Reads what is exported for OpenTelemetry and Prometheus with their own code; `scripts/otlp-test` runs it.

    otlp_test.py PROBITY FOLDER
"""

import base64
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from prometheus_client.parser import text_string_to_metric_families

SECRET = "Basic c2VjcmV0LW9mLXRoZS1jb2xsZWN0b3I="


def check(holds, what):
    if not holds:
        sys.exit(f"otlp-test: {what}")


def decoded(line):
    """A message, read by the decoder of OpenTelemetry. In OTLP ids are hexadecimal, and in JSON of protobuf base64."""
    message = json.loads(line)
    for resource in message["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for holder in [span, *span.get("links", [])]:
                    for key in ("traceId", "spanId", "parentSpanId"):
                        if key in holder:
                            holder[key] = base64.b64encode(bytes.fromhex(holder[key])).decode()
    return Parse(json.dumps(message), ExportTraceServiceRequest())


def spans_in(message):
    return [span for resource in message.resource_spans for scope in resource.scope_spans for span in scope.spans]


def spans_of(lines):
    return [span for line in lines for span in spans_in(decoded(line))]


def attributes(holder):
    return {it.key: getattr(it.value, it.value.WhichOneof("value")) for it in holder.attributes}


def check_spans(spans, summary):
    by_id = {span.span_id: span for span in spans}
    check(len(by_id) == len(spans), "two spans have the same id")
    kinds = Counter(span.name.split(" ")[0] for span in spans)
    results = sum(lane["results"] for lane in summary["runners"])
    check(kinds["run"] == 1 and kinds["case"] == results and kinds["chat"] >= results, f"spans: {kinds}")
    check(len({span.trace_id for span in spans}) == 1, "several traces")
    for span in spans:
        check(len(span.trace_id) == 16 and len(span.span_id) == 8, f"ids of {span.name}")
        check(0 < span.start_time_unix_nano <= span.end_time_unix_nano, f"times of {span.name}")
        check(span.name.startswith("run ") or span.parent_span_id in by_id, f"{span.name} has no parent")
    cases = [span for span in spans if span.name.startswith("case ")]
    verdicts = Counter(attributes(span)["probity.verdict"] for span in cases)
    wanted = {key: sum(lane[of] for lane in summary["runners"]) for key, of in (("pass", "passed"), ("fail", "failed"), ("error", "errors"))}
    check({key: verdicts[key] for key in wanted} == wanted, f"verdicts: {verdicts}, the summary has {wanted}")
    for span in cases:
        evaluated = [attributes(event) for event in span.events if event.name == "gen_ai.evaluation.result"]
        labels = {it["gen_ai.evaluation.name"]: it["gen_ai.evaluation.score.label"] for it in evaluated}
        check(labels["verdict"] == attributes(span)["probity.verdict"], f"{span.name}: {labels}")
    for span in spans:
        if span.name.startswith("chat "):
            found = attributes(span)
            # Nobody else takes part in an answer from a recording.
            kind = 3 if found["probity.source"] == "backend" else 1
            check(found["gen_ai.operation.name"] == "chat" and span.kind == kind, f"{span.name}: {found}")
            check(found["gen_ai.provider.name"], f"{span.name}: {found}")
            said = json.loads(found["gen_ai.input.messages"])
            check(all(part["type"] and message["role"] for message in said for part in message["parts"]), f"{said}")


class Collector(BaseHTTPRequestHandler):
    """Busy, then broken, then content with all but two spans of each message."""

    requests = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        Collector.requests.append((self.path, dict(self.headers), body))
        answers = {1: (429, b"", {"Retry-After": "1"}), 2: (503, b"no", {})}
        status, text, headers = answers.get(len(Collector.requests), (200, self.partial(), {}))
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(text))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def partial(self):
        why = f"too old for {SECRET}"
        if self.headers["content-type"] == "application/json":
            return json.dumps({"partialSuccess": {"rejectedSpans": 2, "errorMessage": why}}).encode()
        answer = ExportTraceServiceResponse()
        answer.partial_success.rejected_spans = 2
        answer.partial_success.error_message = why
        return answer.SerializeToString()

    def log_message(self, *_):
        pass


def check_sending(probity, work, lines, encoding):
    """Sends to a collector that misbehaves. What arrives are the messages that are written to files, in either encoding."""
    Collector.requests.clear()
    server = HTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    to = f"http://127.0.0.1:{server.server_port}/api/public/otel"
    environment = {**os.environ, "COLLECTOR_HEADERS": f"Authorization={SECRET.replace(' ', '%20')}"}
    words = [probity, "export", "--as", "otlp", "--store", "s.db", "--to", to, "--headers-env", "COLLECTOR_HEADERS"]
    words += ["--encoding", encoding]
    ran = subprocess.run(words, cwd=work, env=environment, capture_output=True, text=True)
    told = ran.stdout + ran.stderr
    check(ran.returncode == 1 and "not taken" in told and "too old for" in told and "2 retries" in told, f"exit code {ran.returncode}: {told}")
    check("c2VjcmV0" not in told, f"a secret is told: {told}")
    bodies = [body for _, _, body in Collector.requests]
    check(bodies[0] == bodies[1] == bodies[2], "a message was sent again, and is another")
    if encoding == "json":
        check([body.decode() for body in bodies[2:]] == lines, "other messages were sent than written")
        content_type = "application/json"
    else:
        sent = [span for body in bodies[2:] for span in spans_in(ExportTraceServiceRequest.FromString(body))]
        check(sent == spans_of(lines), "protobuf and JSON do not say the same")
        content_type = "application/x-protobuf"
    for path, headers, _ in Collector.requests:
        headers = {name.lower(): value for name, value in headers.items()}
        check(path == "/api/public/otel/v1/traces" and headers["authorization"] == SECRET, f"{path} {headers}")
        check(headers["content-type"] == content_type, f"{headers}")
    server.shutdown()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def asked(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)


def check_phoenix(probity, work, spans):
    """Sends to a real Phoenix, and asks it for what it has understood."""
    port = free_port()
    environment = {
        **os.environ,
        "PHOENIX_WORKING_DIR": str(work / "phoenix"),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(free_port()),
        "PHOENIX_TELEMETRY_ENABLED": "false",
    }
    url = f"http://127.0.0.1:{port}"
    log = (work / "phoenix.log").open("w")
    phoenix = Path(sys.executable).parent / "phoenix"
    server = subprocess.Popen([phoenix, "serve"], env=environment, stdout=log, stderr=log, cwd=work)
    try:
        wait_for(lambda: asked(f"{url}/v1/projects")["data"], 120, server)
        words = [probity, "export", "--as", "otlp", "--store", "s.db", "--to", url]
        ran = subprocess.run(words, cwd=work, capture_output=True, text=True)
        check(ran.returncode == 0, f"Phoenix refuses: {ran.stderr}")
        # Phoenix stores what it has taken a moment later.
        stored = wait_for(lambda: spans_of_phoenix(url, len(spans)), 60, server)
    finally:
        server.terminate()
        server.wait()
    kinds = Counter(span["span_kind"] for span in stored)
    wanted = Counter(attributes(span)["openinference.span.kind"] for span in spans)
    check(kinds == wanted, f"Phoenix has {kinds}, sent were {wanted}")
    called = next(it for it in stored if it["span_kind"] == "LLM")
    told = called["attributes"]
    for key in ("llm.model_name", "session.id", "input.value", "output.value"):
        check(told.get(key), f"Phoenix has no {key}: {sorted(told)}")
    return len(stored)


def spans_of_phoenix(url, wanted):
    found, cursor = [], ""
    while cursor is not None:
        page = asked(f"{url}/v1/projects/default/spans?limit=100{cursor}")
        found += page["data"]
        cursor = f"&cursor={page['next_cursor']}" if page.get("next_cursor") else None
    return found if len(found) == wanted else None


def wait_for(what, seconds, server):
    """What a server that has to come up answers, as soon as that is something."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        check(server.poll() is None, "Phoenix has ended; its log is phoenix.log")
        try:
            if found := what():
                return found
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            pass
        time.sleep(0.2)
    sys.exit("otlp-test: Phoenix does not answer; its log is phoenix.log")


def check_metrics(probity, work, summary):
    words = [probity, "view", "--port", "0", "--store", "s.db"]
    server = subprocess.Popen(words, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}metrics") as answer:
            check(answer.headers["content-type"].startswith("text/plain; version=0.0.4"), f"{answer.headers}")
            text = answer.read().decode()
    finally:
        server.terminate()
        server.wait()
    families = {family.name: family for family in text_string_to_metric_families(text)}
    check(all(family.type == "gauge" and family.documentation for family in families.values()), f"{families}")
    for lane in summary["runners"]:
        found = {
            sample.labels["verdict"]: sample.value
            for sample in families["probity_results"].samples
            if (sample.labels["runner"], sample.labels["backend"]) == (lane["runner"], lane["backend"])
        }
        wanted = {"pass": lane["passed"], "fail": lane["failed"], "error": lane["errors"], "undecided": lane["undecided"]}
        check(found == wanted, f"/metrics has {found}, the summary {wanted}")
    runs = sum(sample.value for sample in families["probity_runs"].samples)
    check(runs == 1 and families["probity_pass_ratio"].samples, f"{runs} runs")
    return len(text.splitlines())


def main():
    probity, work = sys.argv[1], Path(sys.argv[2]).resolve()
    subprocess.run([probity, "report", "--store", "s.db", "-o", "s.summary.json"], cwd=work, check=True, capture_output=True)
    summary = json.loads((work / "s.summary.json").read_text())
    subprocess.run([probity, "export", "--as", "otlp", "--store", "s.db", "-o", "run.otlp.jsonl"], cwd=work, check=True)
    lines = (work / "run.otlp.jsonl").read_text().splitlines()
    spans = spans_of(lines)
    check_spans(spans, summary)
    quiet = [probity, "export", "--as", "otlp", "--store", "s.db", "--no-texts", "--trace-per-case"]
    quiet = subprocess.run(quiet, cwd=work, check=True, capture_output=True, text=True).stdout
    check("messages" not in quiet and len({it.trace_id for it in spans_of(quiet.splitlines())}) > 2, "texts were not left out")
    check_sending(probity, work, lines, "json")
    check_sending(probity, work, lines, "protobuf")
    shown = check_phoenix(probity, work, spans)
    metrics = check_metrics(probity, work, summary)
    print(f"otlp-test: {len(spans)} spans in {len(lines)} messages, {metrics} lines of metrics: all understood; Phoenix has {shown} of the spans")


main()
