"""Who may not speak to a studio, and what those who may cannot reach: refused or served, never wrong."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.testclient import TestClient

from udcp_dsl.diagnostics import InputError
from udcp_dsl.studio import serving
from udcp_dsl.studio.app import application
from udcp_dsl.studio.guard import MOST_BODY
from udcp_dsl.studio.serving import listening, serve
from udcp_dsl.studio.spec_folder import SpecFolder, example, open_spec
from udcp_dsl.studio.studio import Studio

TOKEN = "secret-of-this-test"


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    """A studio that is really served, at a port of its own."""
    told: list[str] = []
    ready = threading.Event()
    servers: list[Any] = []
    import uvicorn

    class Kept(uvicorn.Server):
        def __init__(self, config: uvicorn.Config) -> None:
            super().__init__(config)
            servers.append(self)

    def tell(address: str) -> None:
        told.append(address)
        ready.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn, "Server", Kept)
        patch.setattr(serving, "_SILENCE", 1.0)
        studio = Studio(*open_spec(folder / "pets.loss"))
        studio.change({"oracles": ["lac"]})
        thread = threading.Thread(target=serve, args=(studio, listening(18765), tell), daemon=True)
        thread.start()
        assert ready.wait(10)
        yield told[0]
        servers[0].should_exit = True
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A studio for all that never gets as far as changing one."""
    folder = tmp_path_factory.mktemp("shared")
    (folder / "pets.loss").write_text("labels { a, b }  loss l = size")
    studio = Studio(*open_spec(folder / "pets.loss"))
    studio.change({"oracles": ["lac"]})
    with TestClient(application(studio, TOKEN, 8765), base_url="http://127.0.0.1:8765") as client:
        yield client
    studio.close()


def said(address: str, request: bytes, *more: bytes) -> bytes:
    """What is answered to bytes, sent as they are, until the other side has ended."""
    parts = urlsplit(address)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) as link:
        found = b""
        try:
            link.sendall(request)
            for part in more:
                link.sendall(part)
            while chunk := link.recv(65536):
                found += chunk
                if b"\r\n\r\n" in found and len(more) == 0:
                    break
        except (ConnectionResetError, BrokenPipeError):  # it has ended while we still spoke
            pass
        return found


HOSTS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1",
    "127.0.0.1:1",
    "localhost.evil.example:{port}",
    "0.0.0.0:{port}",
]


@pytest.mark.parametrize("host", HOSTS)
def test_another_host_is_refused(shared: TestClient, host: str) -> None:
    answer = shared.get(f"/{TOKEN}/", headers={"host": host.format(port=8765)})
    assert answer.status_code == 421
    assert "udcp" not in answer.text


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8765", "http://127.0.0.1:1", "http://localhost"]
)
def test_another_origin_is_refused(shared: TestClient, origin: str) -> None:
    for path in ("", "api/views", "api/change", "api/save", "export", "studio.js"):
        way = shared.post if path in ("api/change", "api/save") else shared.get
        assert way(f"/{TOKEN}/{path}", headers={"origin": origin}).status_code == 403
    assert shared.get(f"/{TOKEN}/", headers={"sec-fetch-site": "cross-site"}).status_code == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8765", "http://localhost:8765"])
def test_its_own_origin_is_served(shared: TestClient, origin: str) -> None:
    assert shared.get(f"/{TOKEN}/", headers={"origin": origin}).status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/", "/api/views", "/wrong/", "/wrong/api/views", f"/{TOKEN[:-1]}/", f"/{TOKEN}x/export", "//", "/studio.js"],
)
def test_without_the_token_nothing_is_told(shared: TestClient, path: str) -> None:
    for answer in (shared.get(path), shared.post(path, json={})):
        assert answer.status_code == 403
        assert "labels" not in answer.text


def test_answers_forbid_the_browser_all_that_is_not_needed(shared: TestClient) -> None:
    answer = shared.get(f"/{TOKEN}/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["referrer-policy"] == "no-referrer"  # the token is in the address
    assert answer.headers["x-content-type-options"] == "nosniff"
    for part in ('src="http', 'href="http', "//cdn", "@import"):
        assert part not in answer.text + shared.get(f"/{TOKEN}/studio.css").text


def test_what_is_no_json_is_refused(shared: TestClient) -> None:
    url = f"/{TOKEN}/api/change"
    assert shared.post(url, content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    for body in (b"", b"{", b"\xff\xfe", b"[" * 100_000):
        assert shared.post(url, content=body, headers={"content-type": "application/json"}).status_code == 400
    assert shared.get(url).status_code == 405
    assert shared.delete(f"/{TOKEN}/").status_code == 405
    assert shared.get(f"/{TOKEN}/api/views", params={"since": "x"}).status_code == 400


@pytest.mark.parametrize(
    "path", ["../pets.loss", "..%2f..%2fetc/passwd", "page/studio.js", "%2e%2e/%2e%2e/", "api/../../x", "pets.loss"]
)
def test_no_path_leads_to_a_file(shared: TestClient, path: str) -> None:
    answer = shared.get(f"/{TOKEN}/{path}")
    assert answer.status_code in (403, 404)
    assert "labels" not in answer.text


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "dermatology/../../x", "dermatology", None, {"a": 1}]
)
def test_only_examples_are_opened(page: Any, name: object) -> None:
    answer = page.post("open", {"example": name} if not isinstance(name, dict) else {"example": json.dumps(name)})
    assert answer.status_code == 400
    assert page.studio.state.place.name == "pets.loss"


def test_a_spec_reads_nothing_outside_its_folder(page: Any) -> None:
    (page.folder.parent / "outside.csv").write_text("name\nsecret\n")
    (page.folder / "link.csv").symlink_to(page.folder.parent / "outside.csv")
    for file in ("../outside.csv", str(page.folder.parent / "outside.csv"), "link.csv"):
        text = f"labels from {json.dumps(file)} column name  loss l = size"
        page.change(text={"text": text, "by": ""})
        views = page.until(lambda v, text=text: v["state"]["text"] == text and not v["spec"]["ok"])
        assert views["spec"]["diagnostics"][0]["code"] == "E302"
        assert "secret" not in json.dumps(views)


def test_nothing_is_written_outside_the_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "victim.loss").write_text("before")
    (folder / "linked.loss").symlink_to(elsewhere / "victim.loss")
    for name in ("../x.loss", "linked.loss", str(elsewhere / "victim.loss"), "a/../../x.loss"):
        with pytest.raises(InputError, match="outside the folder"):
            SpecFolder(folder, name).save("after")
    (folder / "pets.cases").symlink_to(elsewhere / "victim.loss")
    with pytest.raises(InputError, match="outside the folder"):
        SpecFolder(folder, "pets.loss").write_beside(".cases", b"after")
    with pytest.raises(InputError, match="outside the folder"):
        SpecFolder(folder, "pets.loss").read_beside(".cases")
    carried = SpecFolder(folder, "pets.loss", carried={"../x.csv": b""})
    with pytest.raises(InputError, match="outside the folder"):
        carried.save("after")
    assert (elsewhere / "victim.loss").read_text() == "before"
    assert sorted(x.name for x in folder.iterdir()) == ["linked.loss", "pets.cases", "pets.loss"]


def test_an_example_is_saved_in_a_folder_of_its_own_and_never_over_another(folder: Path) -> None:
    place, text = example(Path(__file__).parents[3] / "specs" / "dermatology" / "triage.loss", folder)
    with pytest.raises(InputError, match="save it first"):
        place.write_beside(".cases", b"")
    own, written = place.save(text)
    assert (own.carried, own.folder, sorted(written)) == (
        None,
        folder / "triage",
        ["triage/skin.csv", "triage/triage.loss"],
    )
    with pytest.raises(InputError, match="exists already"):
        place.save(text)


def test_a_body_of_a_gigabyte_is_refused_before_it_is_read(address: str) -> None:
    parts = urlsplit(address)
    head = f"POST {parts.path}api/change HTTP/1.1\r\nHost: {parts.netloc}\r\nContent-Type: application/json\r\n"
    assert said(address, f"{head}Content-Length: {1 << 30}\r\n\r\n".encode()).startswith(b"HTTP/1.1 413")
    assert not said(address, f"{head}Content-Length: -5\r\n\r\n".encode()).startswith(b"HTTP/1.1 200")
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    many = 2 * MOST_BODY // 0x100000
    answer = said(address, f"{head}Transfer-Encoding: chunked\r\n\r\n".encode(), *[chunk] * many)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 413")
    assert httpx.get(address).status_code == 200  # and it lives


def test_200_requests_at_once(address: str) -> None:
    # A connection of its own for each: the server ends idle ones after five seconds, under the next request perhaps.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
    with httpx.Client(timeout=60, limits=limits) as client, ThreadPoolExecutor(200) as pool:

        def ask(i: int) -> int:
            if i % 4 == 0:
                return client.post(address + "api/change", json={"row": i}).status_code
            if i % 4 == 1:
                return client.post(address + "api/change", json={"members": ["cat", "dog"][: i % 3]}).status_code
            return client.get(address + ("api/views?since=0" if i % 4 == 2 else "export")).status_code

        found = list(pool.map(ask, range(200)))
        assert set(found) <= {200, 503}
        assert found.count(200) > 100
        last = client.post(address + "api/change", json={"row": 5, "members": ["ant"]})
        assert last.status_code == 200
        views = client.get(address + "api/views?since=0").json()["views"]
        assert (views["state"]["row"], views["state"]["members"]) == (5, ["ant"])


def test_a_port_in_use_is_answered_with_the_next() -> None:
    first = listening(18900)
    second = listening(first.getsockname()[1])
    try:
        assert second.getsockname()[1] > first.getsockname()[1]
        assert {first.getsockname()[0], second.getsockname()[0]} == {"127.0.0.1"}
    finally:
        first.close()
        second.close()


def test_where_no_port_is_left_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = listening(18950)
    try:
        monkeypatch.setattr("udcp_dsl.studio.serving._TRIED", 1)
        with pytest.raises(InputError, match="--port"):
            listening(taken.getsockname()[1])
    finally:
        taken.close()


def test_half_requests_that_go_silent_do_not_keep_others_out(address: str) -> None:
    """`silence` is made short; with 420 connections that idle, one more is served when they are ended."""
    parts = urlsplit(address)
    halves = [socket.create_connection((parts.hostname or "", parts.port or 0), timeout=20) for _ in range(420)]
    try:
        for half in halves:
            half.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1")
        with httpx.Client(trust_env=False, timeout=60) as client:
            end = time.monotonic() + 60
            while client.get(address).status_code != 200:
                assert time.monotonic() < end
                time.sleep(0.1)
    finally:
        for half in halves:
            half.close()


def test_half_a_body_is_ended_and_a_waiting_page_is_not(address: str) -> None:
    host = address.removeprefix("http://").split("/")[0]
    path = address.removeprefix(f"http://{host}")
    lead = f"POST {path}api/stop HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    assert b"200 OK" not in said(address, f"{lead}Content-Length: 9\r\n\r\n".encode(), b"{")
    with httpx.Client(trust_env=False, timeout=60) as client:
        version = client.get(f"{address}api/views").json()["version"]
        assert client.get(f"{address}api/views", params={"since": version + 1000}).status_code == 200


@pytest.mark.parametrize("target", ["*", "/", "//", "x"])
def test_what_is_no_path_is_refused(address: str, target: str) -> None:
    host = address.removeprefix("http://").split("/")[0]
    answer = said(address, f"OPTIONS {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    assert answer.split()[1] in (b"400", b"403", b"404")


_HUGE, _HALF = "1" + "0" * 400, '"\\ud800"'


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(
            (path, body)
            for path in ("change", "case", "open", "complete", "hover", "fixes")
            for body in (_HUGE, "[]", "[[]]", _HALF, "NaN", "1e999", '{"a": [1]}', "null", "9" * 5000)
        ),
        *(
            ("change", f'{{"{key}": {value}}}')
            for key in ("text", "loss", "param", "members", "row", "drag", "why", "alpha", "oracles")
            for value in (_HUGE, "[[]]", "[{}]", '[["x"]]', f"[{_HALF}]", f'["x", {_HUGE}, 1]', f"[0, {_HUGE}]", "{}")
        ),
        ("change", '{"alpha": "1e-99999999"}'),
        ("open", '{"example": ["x"]}'),
        ("open", '{"example": {}}'),
        ("case", f'{{"name": {_HALF}, "cost": [["cat"], ">", 1]}}'),
        ("case", f'{{"name": "x", "cost": [[{_HALF}], ">", 1]}}'),
        ("case", f'{{"name": "x", "cost": [["cat"], ">", {_HUGE}]}}'),
        ("case", '{"name": "x", "cost": [["cat"], [">"], 1]}'),
        ("case", '{"name": "x", "cost": [["cat"], ">", [["cat"]]]}'),
        ("case", '{"name": "x", "row": {"oracle": ["lac"], "members": []}}'),
        ("complete", f'{{"text": {_HALF}, "at": {{"line": 0, "character": 0}}}}'),
        ("hover", f'{{"text": "x", "at": {{"line": {_HUGE}, "character": 0}}}}'),
        ("fixes", '{"text": "x", "at": [0, 0]}'),
    ],
)
def test_absurd_bodies_are_answered_with_a_sentence(shared: TestClient, path: str, body: str) -> None:
    headers = {"content-type": "application/json"}
    answer = shared.post(f"/{TOKEN}/api/{path}", content=body, headers=headers)
    assert (answer.status_code, bool(answer.json()["error"])) == (400, True)
