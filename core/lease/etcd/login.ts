import type { Log } from "../../observe/log.ts";
import { classify } from "./failure.ts";

export interface LoginOptions {
  readonly username: string;
  readonly password: string;
}

type Authenticate = (request: { name: string; password: string }) => Promise<{ readonly token: string }>;

/**
 * The authentication token shared by all calls. It is good at every member; it ends by age, by a member's restart and
 * by any change of users, and is then asked for anew.
 */
export class Login {
  readonly #options: LoginOptions | undefined;
  readonly #log: Log;
  #token: Promise<string | undefined> | undefined;
  #known: string | undefined;
  #toldUnneeded = false;

  constructor(options: LoginOptions | undefined, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  /** Whether there is a user to log in. */
  get configured(): boolean {
    return this.#options !== undefined;
  }

  /**
   * The token, by `authenticate` when there is none yet; concurrent callers share one call. Undefined without user,
   * and when etcd has authentication off.
   */
  async token(authenticate: Authenticate): Promise<string | undefined> {
    const options = this.#options;
    if (!options) return undefined;
    this.#token ??= this.#fetch(options, authenticate);
    return await this.#token;
  }

  /** Forgets a token that was refused, unless it has been replaced meanwhile. */
  drop(token: string | undefined): void {
    if (token === this.#known) this.#token = undefined;
  }

  async #fetch(
    { username, password }: LoginOptions,
    authenticate: Authenticate,
  ): Promise<string | undefined> {
    try {
      const { token } = await authenticate({ name: username, password });
      this.#known = token;
      return token;
    } catch (error) {
      if (/authentication is not enabled/.test(classify(error).reason)) {
        this.#known = undefined;
        if (!this.#toldUnneeded)
          this.#log.warn("etcd has authentication off: user and password are not used");
        this.#toldUnneeded = true;
        return undefined;
      }
      this.#token = undefined;
      throw error;
    }
  }
}
