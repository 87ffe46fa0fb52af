import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { LineRegistry, LineSharing, type LineStateStore } from '../../../lib/middleware/route/index.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { MemoryLineStateStore } from '../../support/memory-line-state-store.ts'

/** How long a circuit is open, in milliseconds. */
export const RESET_MS = 500

export function lineOf(circuit: object = {}, models: Record<string, string> = { m: 'u' }) {
  const [line] = loadConfig({
    models: Object.keys(models).map((id) => ({ id, kind: 'chat' })),
    lines: [
      {
        ...{ id: 'l', provider: 'p', protocol: 'openai', baseUrl: 'http://localhost/v1', models },
        circuit: { minimumCalls: 4, resetMs: RESET_MS, ...circuit },
      },
    ],
  }).catalog.lines
  assert.ok(line)
  return line
}

/** One process, as far as a line is concerned. It exchanges when it has news, and when the test says so. */
export function processOn(t: TestContext, store: LineStateStore, circuit: object = {}) {
  const lines = new LineRegistry()
  const sharing = new LineSharing({ store, lines, logger: recordingLogger(), pollMs: 4000 })
  t.after(async () => {
    sharing.close()
    await lines.close()
  })
  const state = lines.stateOf(lineOf(circuit))
  const model = state.modelState('m')
  return {
    sharing,
    state,
    model,
    circuit: model.circuit,
    begin: (account: string) => model.circuit.begin(account),
    fails(account: string, times = 4): void {
      for (let i = 0; i < times; i++) model.circuit.end(model.circuit.begin(account), account, 'failure')
    },
    succeeds: (account: string) => model.circuit.end(model.circuit.begin(account), account, 'success'),
    /** The accounts, of two, that the circuit admits. */
    admits: () => ['x', 'y'].filter((account) => model.circuit.admits(account)).join(''),
  }
}
export type Process = ReturnType<typeof processOn>

/** Lets each process send its news, and read the news of the others. */
export async function exchangeAll(...processes: Process[]): Promise<void> {
  for (let round = 0; round < 3; round++) for (const { sharing } of processes) await sharing.refresh()
}

/** Three processes of one store. */
export function processes(t: TestContext, circuit: object = {}): [Process, Process, Process] {
  const store = new MemoryLineStateStore()
  const next = () => processOn(t, new MemoryLineStateStore(store), circuit)
  return [next(), next(), next()]
}
