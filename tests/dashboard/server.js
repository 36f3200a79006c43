// A NATS server with a WebSocket listener, and a web server for the page: both on loopback, both the test's own.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createServer as createSocket } from "node:net";
import { join } from "node:path";

const PLACES = ["/usr/local/bin/nats-server", "/usr/bin/nats-server", "/usr/local/sbin/nats-server", "/usr/sbin/nats-server"];
const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
const START_MS = 15000;

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function natsProgram() {
  return process.env.BELLOWS_NATS_SERVER ?? PLACES.find(existsSync);
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const socket = createSocket()
      .on("error", reject)
      .listen(0, "127.0.0.1", () => {
        const { port } = socket.address();
        socket.close(() => resolve(port));
      });
  });
}

// Ports stay the same over a restart, so that the page finds it again.
export class NatsServer {
  constructor(dir, more = "") {
    Object.assign(this, { dir, more, child: null });
  }

  async start() {
    this.port ??= await freePort();
    this.webPort ??= await freePort();
    mkdirSync(this.dir, { recursive: true });
    writeFileSync(
      join(this.dir, "nats.conf"),
      [
        `listen: "127.0.0.1:${this.port}"`,
        `max_payload: 8MB`,
        `log_file: "${this.dir}/nats.log"`,
        `jetstream { store_dir: "${this.dir}/store" }`,
        `websocket { host: "127.0.0.1", port: ${this.webPort}, no_tls: true ${this.more} }`,
        "",
      ].join("\n"),
    );
    const child = spawn(natsProgram(), ["-c", join(this.dir, "nats.conf")], { stdio: "ignore" });
    this.child = child;
    child.on("exit", () => child === this.child && (this.child = null));
    for (const end = Date.now() + START_MS; ; await sleep(30)) {
      const answer = await fetch(`http://127.0.0.1:${this.webPort}/`).catch(() => null);
      if (answer) return this;
      if (!this.child || Date.now() > end) throw new Error(`nats-server does not listen; see ${this.dir}/nats.log`);
    }
  }

  get url() {
    return `nats://127.0.0.1:${this.port}`;
  }

  get webUrl() {
    return `ws://127.0.0.1:${this.webPort}`;
  }

  async kill(signal = "SIGKILL") {
    const { child } = this;
    if (!child) return;
    const gone = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await gone;
  }
}

// Serves the built page; answers with {url, close()}. `config` is what config.json says, or gives it.
export function serve(folder, config) {
  const server = createServer((request, response) => {
    const name = request.url === "/" ? "index.html" : request.url.slice(1);
    if (name === "config.json")
      return response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify(typeof config === "function" ? config() : config));
    if (!/^[a-z]+\.(html|js|css|svg)$/.test(name)) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[name.split(".")[1]] }).end(readFileSync(join(folder, name)));
  });
  return new Promise((resolve) =>
    server.listen(0, "127.0.0.1", () =>
      resolve({
        url: `http://127.0.0.1:${server.address().port}/`,
        close: () =>
          new Promise((done) => {
            server.closeAllConnections?.();
            server.close(done);
          }),
      }),
    ),
  );
}
