"""An S3 server in one JVM, and STS, for the tests. Ended whatever happens."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import httpx
from botocore.config import Config
from moto.server import ThreadedMotoServer

from headgate.config import Settings
from headgate.embedded.ports import free_port
from headgate.jvm import java_binary
from tests.support.services import wait_for

KEY, SECRET = "a-test-key", "canary-7f3c1e-secret"
ROLE = "arn:aws:iam::123456789012:role/lake"


@dataclass(frozen=True)
class ObjectStore:
    endpoint: str

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, request_checksum_calculation="when_required"),
        )

    def keys(self, bucket: str, prefix: str = "") -> list[str]:
        client = self.client()
        try:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
            return [one["Key"] for page in pages for one in page.get("Contents", ())]
        finally:
            client.close()

    @property
    def environment(self) -> dict[str, str]:
        """What Headgate's processes find the store and their keys by."""
        return {
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "HEADGATE_STORAGE__ENDPOINT": self.endpoint,
            "HEADGATE_STORAGE__PATH_STYLE": "true",
        }


@contextmanager
def object_store(folder: Path, *buckets: str, keys_checked: bool = True) -> Iterator[ObjectStore]:
    """s3proxy over a folder. Without `keys_checked` it takes any keys, those of a role as well."""
    port = free_port()
    objects = folder / "objects"
    objects.mkdir(parents=True)
    login = (
        f"s3proxy.authorization=aws-v2-or-v4\ns3proxy.identity={KEY}\ns3proxy.credential={SECRET}\n"
        if keys_checked
        else "s3proxy.authorization=none\ns3proxy.ignore-unknown-headers=true\n"
    )
    settings = folder / "s3proxy.properties"
    settings.write_text(
        f"s3proxy.endpoint=http://127.0.0.1:{port}\n{login}"
        "jclouds.provider=filesystem-nio2\njclouds.identity=any\njclouds.credential=any\n"
        f"jclouds.filesystem.basedir={objects}\n"
    )
    quiet = folder / "logback.xml"
    quiet.write_text('<configuration><root level="OFF"/></configuration>')
    jars = Settings().jars_folder / "s3proxy"
    with (folder / "s3proxy.log").open("wb") as log:
        process = subprocess.Popen(
            [
                java_binary(),
                "-Xmx256m",
                f"-Dlogback.configurationFile={quiet}",
                "-cp",
                f"{jars}{os.sep}*",
                "org.gaul.s3proxy.Main",
                "--properties",
                str(settings),
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            store = ObjectStore(f"http://127.0.0.1:{port}")
            wait_for("s3proxy", lambda: _answers(store, process))
            client = store.client()
            for bucket in buckets:
                client.create_bucket(Bucket=bucket)
            client.close()
            yield store
        finally:
            process.kill()
            process.wait()


def _answers(store: ObjectStore, process: "subprocess.Popen[bytes]") -> bool:
    assert process.poll() is None, "s3proxy ended: see s3proxy.log"
    try:
        return httpx.get(store.endpoint, trust_env=False).status_code < 500
    except httpx.TransportError:
        return False


@contextmanager
def token_service() -> Iterator[str]:
    """STS, by moto: its address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        _, port = server.get_host_and_port()
        yield f"http://127.0.0.1:{port}"
    finally:
        server.stop()
