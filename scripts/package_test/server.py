"""Servers of the tests: a model that answers, over TLS too, and one that knows names."""

import http.server
import json
import socket
import ssl
import threading

from common import run


def certificates(folder):
    """An authority, and a certificate of it for `model.test`."""
    folder.mkdir()

    def openssl(*words):
        run(["openssl", *words], cwd=folder)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    openssl("req", "-x509", *key, "-days", "2", "-subj", "/CN=authority of a test", "-keyout", "authority.key",
            "-out", "authority.pem", "-addext", "basicConstraints=critical,CA:TRUE")
    openssl("req", *key, "-subj", "/CN=model.test", "-keyout", "server.key", "-out", "server.csr")
    (folder / "names").write_text("subjectAltName=DNS:model.test\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key", "-CAcreateserial",
            "-days", "2", "-extfile", "names", "-out", "server.pem")
    return folder


class Serving:
    """A server on a port that the system chooses, for as long as a block lasts."""

    def __init__(self, handler, secrets=None):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.scheme = "http"
        if secrets is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(secrets / "server.pem", secrets / "server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
            self.scheme = "https"
        self.port = self.server.server_address[1]

    def url(self, host="127.0.0.1"):
        return f"{self.scheme}://{host}:{self.port}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    """Says nothing of its work."""

    def log_message(self, *_):
        pass

    def answer(self, status, body, kind="application/json"):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Chat(Handler):
    """OpenAI's chat completions, from somebody who knows one city."""

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": "It is Paris."}
        usage = {"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "1", "object": "chat.completion", "model": "small", "choices": [choice], "usage": usage}
        self.answer(200, json.dumps(reply).encode())


class Model(Serving):
    def __init__(self, secrets=None):
        super().__init__(Chat, secrets)


class Names:
    """A server that knows the addresses of some names (DNS, questions of type A; anything else has no answer)."""

    # Port 53 is the only one that a system asks, so it is an address of this machine that nobody else uses.
    address = "127.0.0.77"

    def __init__(self, names):
        self.names = names
        self.asked = []
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((self.address, 53))

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.socket.close()

    def serve(self):
        while True:
            try:
                question, sender = self.socket.recvfrom(512)
            except OSError:
                return
            self.socket.sendto(self.reply(question), sender)

    def reply(self, question):
        labels, at = [], 12
        while question[at]:
            labels.append(question[at + 1 : at + 1 + question[at]].decode())
            at += 1 + question[at]
        name, end = ".".join(labels), at + 5
        self.asked.append(name)
        wants_address = question[at + 1 : at + 3] == b"\x00\x01"
        found = self.names.get(name) if wants_address else None
        known = name in self.names
        flags = b"\x85\x80" if known else b"\x85\x83"
        head = question[:2] + flags + b"\x00\x01" + (b"\x00\x01" if found else b"\x00\x00") + b"\x00\x00\x00\x00"
        answer = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04" + socket.inet_aton(found) if found else b""
        return head + question[12:end] + answer
