/** The live channel's vectors: messages as the kernel sends them, and what a view makes of them. */
import assert from "node:assert/strict";
import test from "node:test";
import { GraphModel } from "../src/model/graph.js";
import { Channel, isFromKernel } from "../src/wire/channel.js";
import type { FromView } from "../src/wire/messages.js";
import vectors from "./vectors/live.json" with { type: "json" };

for (const { name, steps } of vectors) {
  test(name, () => {
    const channel = new Channel();
    const model = new GraphModel();
    channel.take({ kind: "open" });
    for (const step of steps) {
      const message: unknown = step.receive;
      assert.ok(isFromKernel(message));
      const sent: FromView[] = [];
      for (const instruction of channel.take({ kind: "message", message, at_ms: 0 })) {
        if (instruction.kind === "send") sent.push(instruction.message);
        else if (instruction.kind === "deliver" && instruction.message.kind === "snapshot") model.applySnapshot(instruction.message);
        else if (instruction.kind === "deliver" && instruction.message.kind === "delta") model.applyDelta(instruction.message);
      }
      assert.deepEqual(sent, step.sends);
      assert.equal(channel.state, step.state);
      assert.deepEqual([...model.nodes.values()].map((node) => node.name), step.ops);
      for (const [name, body] of Object.entries("bodies" in step ? (step.bodies ?? {}) : {})) {
        assert.deepEqual(model.bodies.get(name), { name, isFunction: true, role: "", isOfGradient: false, ...body });
      }
      assert.deepEqual(model.session && [model.session.state, model.session.steps], step.run);
    }
  });
}
