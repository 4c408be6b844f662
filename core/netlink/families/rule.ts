import type { RoutingRule } from "../objects.ts";
import type { MessageBuilder } from "../wire/builder.ts";
import { AF_INET, AF_INET6, FRA_PRIORITY, FRA_TABLE, RTM_DELRULE } from "../wire/constants.ts";

/** `ip -4|-6 rule delete priority PRIORITY table TABLE`: struct fib_rule_hdr without any selector. */
export function encodeRuleDelete(
  builder: MessageBuilder,
  sequence: number,
  family: 4 | 6,
  { priority, table }: RoutingRule,
): void {
  builder.begin(RTM_DELRULE, 0, sequence);
  builder.u32(family === 4 ? AF_INET : AF_INET6);
  builder.u32(0);
  builder.u32(0);
  builder.attributeU32(FRA_PRIORITY, priority);
  builder.attributeU32(FRA_TABLE, table);
  builder.end();
}
