import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A certificate with its key, as PEM files. */
export interface CertificateFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export interface CertificateOptions {
  /** Subject alternative names in OpenSSL's form, e.g. `IP:127.0.0.1`, `DNS:localhost`. */
  readonly names?: readonly string[];
  /** Whether it ended yesterday. */
  readonly expired?: boolean;
}

/** A certificate authority in a temporary folder, made with openssl. */
export class CertificateAuthority implements Disposable {
  readonly folder = mkdtempSync(join(tmpdir(), "flannel-ca-"));
  readonly caFile = join(this.folder, "ca.pem");
  readonly #keyFile = join(this.folder, "ca.key");
  #serial = 0;

  constructor(name = "test authority") {
    openssl(
      "req",
      ...["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
      ...["-subj", `/CN=${name}`, "-keyout", this.#keyFile, "-out", this.caFile],
    );
  }

  /** Issues a certificate good for servers and clients. */
  issue(name: string, { names = [], expired = false }: CertificateOptions = {}): CertificateFiles {
    this.#serial += 1;
    const base = join(this.folder, `${name}-${this.#serial}`);
    const files = { certFile: `${base}.pem`, keyFile: `${base}.key` };
    const extensions = join(this.folder, `${name}-${this.#serial}.ext`);
    writeFileSync(
      extensions,
      [
        "extendedKeyUsage=serverAuth,clientAuth",
        ...(names.length > 0 ? [`subjectAltName=${names.join(",")}`] : []),
      ].join("\n"),
    );
    openssl(
      "req",
      ...["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", `/CN=${name}`],
      ...["-keyout", files.keyFile, "-out", `${base}.csr`],
    );
    openssl(
      "x509",
      ...["-req", "-in", `${base}.csr`, "-CA", this.caFile, "-CAkey", this.#keyFile],
      ...["-set_serial", String(this.#serial), "-extfile", extensions, "-out", files.certFile],
      // Negative days put the end before the beginning: expired for every clock.
      ...["-days", expired ? "-1" : "2"],
    );
    return files;
  }

  [Symbol.dispose](): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

function openssl(...args: string[]): void {
  const { exitCode, stderr } = Bun.spawnSync(["openssl", ...args], { stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`openssl ${args.join(" ")}: ${stderr.toString()}`);
}
