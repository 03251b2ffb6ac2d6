"""Starts oaimend, and the reverse proxies with the configurations of packaging/reverse-proxy.

Only ports and paths of a configuration are replaced. A line in `Setup.without` is removed.
"""

import os
import re
import socket
import ssl
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from servers import PROJECT, START_SECONDS_MAX, Process, free_port, program

EXAMPLES = PROJECT / "packaging" / "reverse-proxy"


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


@dataclass(frozen=True)
class Setup:
    """A reverse proxy with one of the examples."""

    name: str
    program: str
    example: str
    host: str = "oai.example.org"
    # The path below which the proxy serves oaimend.
    path: str = ""
    without: tuple = ()

    @property
    def speaks_http_1_0(self):
        """Whether the proxy sends HTTP/1.0 requests to oaimend, the default of nginx."""
        return bool(self.without)


HTTP_1_1_LINES = ("proxy_http_version 1.1;", 'proxy_set_header Connection "";')
SETUPS = [
    Setup("nginx", "nginx", "nginx.conf"),
    Setup("nginx, HTTP/1.0", "nginx", "nginx.conf", without=HTTP_1_1_LINES),
    Setup("nginx, path", "nginx", "nginx-path.conf", "www.example.org", "/oai"),
    Setup("Apache", "apache2", "apache.conf"),
    Setup("Apache, path", "apache2", "apache-path.conf", "www.example.org", "/oai"),
    Setup("Caddy", "caddy", "Caddyfile"),
    Setup("Caddy, path", "caddy", "Caddyfile-path", "www.example.org", "/oai"),
]


def example(setup, replacements):
    """The example of a setup with each text replaced, which must occur in it."""
    lines = (EXAMPLES / setup.example).read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if line.strip() not in setup.without)
    for old, new in replacements.items():
        if old not in text:
            raise SystemExit(f"{setup.example} does not contain {old!r}")
        text = text.replace(old, new)
    return text


def caddy_version():
    """The version as numbers, such as `(2, 6, 2)`."""
    ran = subprocess.run([program("caddy"), "version"], capture_output=True, text=True, check=True)
    return tuple(int(number) for number in re.findall(r"\d+", ran.stdout)[:3])


def self_signed_certificate(folder, host):
    certificate, key = folder / "certificate.pem", folder / "certificate.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", f"/CN={host}", "-addext", f"subjectAltName=DNS:{host}", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )
    return certificate, key


NGINX = """
{user}
daemon off; pid nginx.pid; error_log stderr;
events {{ }}
http {{
    access_log off;
    client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
    include site.conf;
}}
"""


def nginx(setup, folder, ports):
    certificate, key = self_signed_certificate(folder, setup.host)
    replacements = {
        f"/etc/ssl/{setup.host}.pem": str(certificate),
        f"/etc/ssl/{setup.host}.key": str(key),
        "listen 443": f"listen 127.0.0.1:{ports.https}",
        "listen [::]:443": f"listen [::1]:{ports.https}",
        "127.0.0.1:8080": f"127.0.0.1:{ports.oaimend}",
    }
    if not setup.path:
        replacements |= {"listen 80": f"listen 127.0.0.1:{ports.http}", "listen [::]:80": f"listen [::1]:{ports.http}"}
    site = example(setup, replacements)
    if not has_ipv6():
        site = "".join(line for line in site.splitlines(keepends=True) if "[::1]" not in line)
    (folder / "site.conf").write_text(site)
    (folder / "nginx.conf").write_text(NGINX.format(user="user root;" if os.geteuid() == 0 else ""))
    command = [program("nginx"), "-p", f"{folder}/", "-c", "nginx.conf"]
    return Process(command, folder, ports.https), certificate


APACHE = """
ServerRoot "{folder}"
ServerName localhost
PidFile apache.pid
ErrorLog apache-errors.log
DefaultRuntimeDir "{folder}"
Mutex file:{folder}
{user}
{modules}
{listen}
Include site.conf
"""
# What `a2enmod ssl proxy_http` and a Debian system without other changes load.
APACHE_MODULES = ["mpm_event", "authz_core", "alias", "socache_shmcb", "ssl", "proxy", "proxy_http"]


def apache(setup, folder, ports):
    certificate, key = self_signed_certificate(folder, setup.host)
    replacements = {
        f"/etc/ssl/{setup.host}.pem": str(certificate),
        f"/etc/ssl/{setup.host}.key": str(key),
        "<VirtualHost *:443>": f"<VirtualHost 127.0.0.1:{ports.https}>",
        "127.0.0.1:8080": f"127.0.0.1:{ports.oaimend}",
    }
    listen = [ports.https]
    if not setup.path:
        replacements["<VirtualHost *:80>"] = f"<VirtualHost 127.0.0.1:{ports.http}>"
        listen.append(ports.http)
    (folder / "site.conf").write_text(example(setup, replacements))
    modules = "/usr/lib/apache2/modules"
    (folder / "apache.conf").write_text(APACHE.format(
        folder=folder,
        user="User www-data\nGroup www-data" if os.geteuid() == 0 else "",
        modules="\n".join(f"LoadModule {name}_module {modules}/mod_{name}.so" for name in APACHE_MODULES),
        listen="\n".join(f"Listen 127.0.0.1:{port}" for port in listen),
    ))
    command = [program("apache2"), "-f", str(folder / "apache.conf"), "-DFOREGROUND"]
    return Process(command, folder, ports.https), certificate


# `local_certs`: the certificate is one of Caddy's own authority, in place of one from the network.
CADDY = """
{{
    admin off
    https_port {https}
    http_port {http}
    default_bind 127.0.0.1
    local_certs
    skip_install_trust
    storage file_system {folder}/storage
}}
import site
"""


def caddy(setup, folder, ports):
    (folder / "site").write_text(example(setup, {"127.0.0.1:8080": f"127.0.0.1:{ports.oaimend}"}))
    (folder / "Caddyfile").write_text(CADDY.format(folder=folder, https=ports.https, http=ports.http))
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    command = [program("caddy"), "run", "--adapter", "caddyfile", "--config", "Caddyfile"]
    started = Process(command, folder, ports.https, env=environment)
    return started, folder / "storage" / "pki" / "authorities" / "local" / "root.crt"


STARTS = {"nginx": nginx, "apache2": apache, "caddy": caddy}


@dataclass(frozen=True)
class Ports:
    https: int
    http: int
    oaimend: int


OAIMEND = """
listen = "127.0.0.1:{port}"
public_url = "{public_url}"

[admin]
listen = "off"

[clients]
trusted_proxies = ["127.0.0.1", "::1"]
wait_max_millis = 0
"""


class Stack:
    """oaimend with a reverse proxy in front of it, until the end of a `with` block."""

    def __init__(self, setup, oaimend, mappings):
        self.setup = setup
        self.folder = tempfile.TemporaryDirectory(prefix="oaimend-reverse-proxy-")
        folder = Path(self.folder.name)
        # The workers of Apache run as another user.
        folder.chmod(0o755)
        self.ports = Ports(free_port(), free_port(), free_port())
        self.public_url = f"https://{setup.host}:{self.ports.https}{setup.path}"
        (folder / "mappings").mkdir()
        for name, text in mappings.items():
            (folder / "mappings" / f"{name}.toml").write_text(text)
        (folder / "oaimend.toml").write_text(OAIMEND.format(port=self.ports.oaimend, public_url=self.public_url))
        self.oaimend = Process([oaimend, "serve"], folder, self.ports.oaimend)
        self.proxy, self.certificate = STARTS[setup.program](setup, folder, self.ports)

    def __enter__(self):
        try:
            self.oaimend.__enter__()
            self.proxy.__enter__()
            self.wait_for_certificate()
        except BaseException:
            self.__exit__()
            raise
        return self

    def wait_for_certificate(self):
        """Caddy accepts connections before it has a certificate."""
        deadline = time.monotonic() + START_SECONDS_MAX
        while True:
            try:
                context = ssl.create_default_context(cafile=str(self.certificate))
                with socket.create_connection(("127.0.0.1", self.ports.https), timeout=START_SECONDS_MAX) as plain:
                    context.wrap_socket(plain, server_hostname=self.setup.host).close()
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    raise SystemExit(f"{self.setup.name} has no usable certificate: {error}") from error
                time.sleep(0.05)

    def __exit__(self, *_):
        self.proxy.__exit__()
        self.oaimend.__exit__()
        self.folder.cleanup()
