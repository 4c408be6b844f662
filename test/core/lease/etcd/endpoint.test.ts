import { describe, expect, test } from "bun:test";
import { parseEndpoints } from "../../../../core/lease/etcd/endpoint.ts";

const SECRET = "s3cret-passw0rd";

describe("endpoints", () => {
  test.each([
    [
      ["http://127.0.0.1:4001", " http://127.0.0.1:2379/ "],
      ["http://127.0.0.1:4001", "http://127.0.0.1:2379"],
    ],
    [["https://Etcd-1.Example:2379"], ["https://etcd-1.example:2379"]],
    [
      ["[fd00::5]:2379", "https://[fd00::5]:2379"],
      ["http://[fd00::5]:2379", "https://[fd00::5]:2379"],
    ],
    [["127.0.0.1:2379", "http://127.0.0.1:2379", ""], ["http://127.0.0.1:2379"]],
  ])("%p is read as %p", (texts, urls) => {
    expect(parseEndpoints(texts).map((endpoint) => endpoint.url)).toEqual(urls);
  });

  test.each([
    ["http://127.0.0.1:2379/v2", "path"],
    ["http://127.0.0.1", "port"],
    ["ftp://127.0.0.1:2379", "scheme ftp"],
    ["http://127.0.0.1:70000", "no host and port"],
    ["http://:2379", "no host and port"],
  ])("%p is refused: %s", (text, reason) => {
    expect(() => parseEndpoints([text])).toThrow(reason);
    expect(() => parseEndpoints([text])).toThrow(expect.objectContaining({ code: "ETCD_ENDPOINT" }));
  });

  test("a password in the URL is not repeated", () => {
    const message = (() => {
      try {
        parseEndpoints([`http://user:${SECRET}@127.0.0.1:2379`]);
        return "";
      } catch (error) {
        return String(error);
      }
    })();
    expect(message).toContain("user in the URL");
    expect(message).not.toContain(SECRET);
  });
});
