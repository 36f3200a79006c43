// The connection to the fleet's NATS server: over WebSocket, with the official client. It only listens and reads: subscriptions to telemetry and
// events, direct gets of the stream that keeps them. It comes back by itself for as long as the page is open, and reads what it missed.
import { wsconnect } from "@nats-io/nats-core";
import { readHistory } from "./history.js";
import { names as namesOf, parseSubject } from "./wire.js";

const RECONNECT_MS = 1000;
const REQUEST_MS = 4000;
const PING_MS = 5000;
const FIRST_RETRY_MS = 2000;

// settings: {server, prefix, name, user, password}; the name is the holder's, whose inbox the server grants. on: {message(kind, where, decoded, live), bad(), status(text, info)} where status is one of
// "connecting", "connected", "reading", "lost", "refused".
export class Link {
  constructor(settings, decode, on) {
    Object.assign(this, { settings, decode, on, names: namesOf(settings.prefix) });
    this.connection = null;
    this.closed = false;
    this.reading = 0;
  }

  async open() {
    while (!this.closed) {
      this.on.status("connecting");
      try {
        this.connection = await wsconnect(this.#options());
        break;
      } catch (error) {
        if (isRefusal(error)) return this.on.status("refused", error.message);
        this.on.status("lost", error.message);
        await new Promise((resolve) => setTimeout(resolve, FIRST_RETRY_MS));
      }
    }
    if (this.closed) return this.close();
    this.#listen();
    this.#watch();
    await this.#catchUp();
  }

  async close() {
    this.closed = true;
    await this.connection?.close().catch(() => {});
  }

  #options() {
    const { server, name, user, password } = this.settings;
    return {
      servers: server,
      name: "bellows dashboard",
      inboxPrefix: `_INBOX.dashboard.${[name, user].find((word) => /^[A-Za-z0-9_-]{1,64}$/.test(word ?? "")) ?? "page"}`,
      maxReconnectAttempts: -1,
      reconnectTimeWait: RECONNECT_MS,
      reconnectJitter: 200,
      pingInterval: PING_MS,
      maxPingOut: 2,
      timeout: 5000,
      ...(user ? { user, pass: password } : {}),
    };
  }

  #listen() {
    for (const filter of [this.names.telemetry, this.names.events]) {
      this.connection.subscribe(filter, {
        callback: (error, msg) => {
          if (error) this.on.status("refused", error.message);
          else this.#take(msg.subject, msg.data, true);
        },
      });
    }
  }

  async #watch() {
    for await (const { type, error } of this.connection.status()) {
      if (type === "disconnect") this.on.status("lost");
      else if (type === "reconnect") this.#catchUp();
      else if (type === "error" && isRefusal(error)) this.on.status("refused", error.message);
    }
    if (!this.closed) {
      this.on.status("lost");
      setTimeout(() => this.open(), FIRST_RETRY_MS);
    }
  }

  // What the stream keeps of the time that this page did not listen.
  async #catchUp() {
    const turn = ++this.reading;
    const stop = () => this.closed || turn !== this.reading;
    this.on.status("reading");
    try {
      await readHistory({
        get: (stream, request) => this.#get(stream, request),
        take: ({ kind, subject, data }) => this.#take(subject, data, false, kind),
        prefix: this.settings.prefix,
        names: this.names,
        stop,
      });
    } catch (error) {
      // Without the past the present still shows.
      console.info(`history not read: ${error.message}`);
    }
    if (!stop() && !this.connection.isClosed()) this.on.status("connected");
  }

  async #get(stream, request) {
    const msg = await this.connection.request(`$JS.API.DIRECT.GET.${stream}`, JSON.stringify(request), { timeout: REQUEST_MS });
    if (!msg.headers?.has("Nats-Sequence")) return null; // 404, 408: not there
    return { subject: msg.headers.get("Nats-Subject"), sequence: Number(msg.headers.get("Nats-Sequence")), data: msg.data };
  }

  #take(subject, data, live, kind) {
    const where = kind ? {} : parseSubject(this.settings.prefix, subject);
    if (!where || !data.length) return;
    try {
      this.on.message(kind ?? where.kind, where, this.decode(kind ?? where.kind, data), live);
    } catch {
      this.on.bad();
    }
  }
}

const isRefusal = (error) => /authoriz|permission|authentic/i.test(error?.message ?? String(error));
