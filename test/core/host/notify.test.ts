import { expect, test } from "bun:test";
import { notifyServiceManager } from "../../../core/host/notify.ts";
import { NotifySocket } from "../../lab/notify-socket.ts";
import { until } from "../../lab/until.ts";
import { TemporaryFolder } from "./temporary-folder.ts";

test.each([
  ["a path", (folder: TemporaryFolder) => folder.file("notify")],
  ["an abstract name", () => `@flannel-test-${process.pid}`],
])("each state is one datagram to %s", async (_, place) => {
  using folder = new TemporaryFolder();
  const path = place(folder);
  using socket = new NotifySocket(path);
  expect(notifyServiceManager("READY=1", path)).toBe(true);
  expect(notifyServiceManager("STOPPING=1", path)).toBe(true);
  await until(() => socket.messages.length === 2, { message: "two datagrams" });
  expect(socket.messages).toEqual(["READY=1", "STOPPING=1"]);
});

test("without a listener, or with a path no socket can have, it is not sent and nothing is thrown", () => {
  expect(notifyServiceManager("READY=1", "/nonexistent/notify")).toBe(false);
  expect(notifyServiceManager("READY=1", `/${"x".repeat(200)}`)).toBe(false);
  expect(notifyServiceManager("READY=1", "")).toBe(false);
});
