import type { CloudChange } from "../../../plugins/sdk/cloud.ts";

/** A change as a line for people: `create 10.5.1.0/24 → eni-1 in rtb-1`. */
export function describeChange(change: CloudChange): string {
  switch (change.action) {
    case "create":
      return `create ${change.dst} → ${change.target} in ${change.table}`;
    case "replace": {
      const { former } = change;
      const state = former.state === "active" ? "" : `, ${former.state}`;
      return `replace ${change.dst} → ${change.target} in ${change.table} (was ${former.target}${state})`;
    }
    case "delete": {
      const { target, state } = change.former;
      return `delete ${change.dst} → ${target}${state === "active" ? "" : ` (${state})`} in ${change.table}`;
    }
    case "mark":
      return `mark ${change.dst} → ${change.former.target} in ${change.table} as flannel's`;
    case "set": {
      const { name, subject, wanted, actual } = change.setting;
      return `set ${name} of ${subject} to ${wanted} (is ${actual})`;
    }
  }
}
