"""Credentials that AWS lends: to a machine, to a container, for a web identity. One server lends them and is S3."""

import contextlib
import http.server
import json
import os
import shutil
import subprocess
import threading

import pytest

SECRET, TOKEN = "a-lent-secret", "a-lent-token"
UNTIL = "2999-01-01T00:00:00Z"
STS = f"""<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>web-key</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey><SessionToken>{TOKEN}</SessionToken>
<Expiration>{UNTIL}</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""


class Lender(http.server.BaseHTTPRequestHandler):
    """It notes how requests for objects are signed, and has no object."""

    protocol_version = "HTTP/1.1"
    signed: list  # of each: the id of the key, and the token

    def lend(self):
        path, roles = self.path.split("?")[0], "/latest/meta-data/iam/security-credentials/"
        key = {f"{roles}lab": "machine-key", "/container": "container-key"}.get(path)
        if path == "/latest/api/token":
            return "metadata"
        if path == roles:
            return "lab"
        if key is not None and (path != "/container" or self.headers["Authorization"] == "of-the-container"):
            return json.dumps({"Code": "Success", "AccessKeyId": key, "SecretAccessKey": SECRET, "Token": TOKEN,
                               "Expiration": UNTIL})  # fmt: skip
        return STS if path == "/sts" and "WebIdentityToken=of-the-web" in self.path else None

    def answer(self):
        body = self.lend()
        if self.path.startswith("/plates"):
            key = self.headers["Authorization"].split("Credential=")[1].split("/")[0]
            self.signed.append((key, self.headers["x-amz-security-token"]))
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(body or "")))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write((body or "").encode())

    do_GET = do_HEAD = do_PUT = do_POST = answer

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def lender():
    """The URL of a server, and the signatures of what it was asked for."""
    handler = type("OwnLender", (Lender,), {"signed": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", handler.signed
    finally:
        server.shutdown()
        server.server_close()


def identity(kind, url, folder):
    """The variables that a machine, container or job of this kind has."""
    token = folder / "token"
    token.write_text(f"of-the-{kind}")
    return {
        "machine": {"AWS_METADATA_ENDPOINT": url},
        "container": {
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{url}/container",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token),
        },
        "web": {
            "AWS_WEB_IDENTITY_TOKEN_FILE": str(token), "AWS_ROLE_ARN": "arn:aws:iam::1:role/lab",
            "AWS_ENDPOINT_URL_STS": f"{url}/sts",
        },
    }[kind]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        ("machine", "the role of this machine (instance metadata)"),
        ("container", "the container (AWS_CONTAINER_CREDENTIALS_FULL_URI)"),
        ("web", "the web identity in AWS_WEB_IDENTITY_TOKEN_FILE"),
    ],
)
def test_requests_are_signed_by_what_is_lent(kind, source, tmp_path):
    binary = os.environ.get("WELLREAD") or shutil.which("wellread")
    with lender() as (url, signed):
        left_out = ("AWS_", "WELLREAD_ANONYMOUS")
        env = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
        env |= identity(kind, url, tmp_path) | {
            "AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1",
            # A busy machine answers late.
            "AWS_METADATA_SERVICE_TIMEOUT": "600", "WELLREAD_ATTEMPTS": "2",
        }  # fmt: skip
        done = subprocess.run([binary, "info", "s3://plates/a.parquet"], capture_output=True, text=True, env=env)
    assert done.returncode == 1 and f"credentials: {source}" in done.stderr, done.stderr
    assert set(signed) == {(f"{kind}-key", TOKEN)}, done.stderr
    assert SECRET not in done.stderr and TOKEN not in done.stderr
