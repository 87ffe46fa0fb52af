import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { type OpenCall, openCall } from '../../../lib/core/call/index.ts'
import type { Catalog, Model } from '../../../lib/core/catalog/index.ts'
import { chatCompletions } from '../../../lib/core/operations/index.ts'
import { CandidateTable } from '../../../lib/routing/candidates/candidate.ts'
import { filterCandidates } from '../../../lib/routing/candidates/filters.ts'
import { orderCandidates, STRATEGIES, type StrategyName } from '../../../lib/routing/candidates/strategies.ts'
import { LineRegistry } from '../../../lib/routing/lines/line-registry.ts'
import { loadConfig } from '../../support/any-config.ts'
import { BENCH_MODEL, chatRequest } from '../workload.ts'
import type { ScaleCase } from './rounds.ts'

/** Lines of which all serve one model, and one serves another. */
export interface LinesSide {
  readonly lines: number
  readonly catalog: Catalog
  readonly table: CandidateTable
  readonly calls: { readonly shared: OpenCall; readonly alone: OpenCall }
}

const ALONE_MODEL = 'chat-alone'
const AT_ONCE = 20

export const LINE_CASES: readonly ScaleCase<LinesSide>[] = [
  choosing('priority', 'alone', 'filter and order, one line has the model'),
  ...(Object.keys(STRATEGIES) as StrategyName[]).map((name) =>
    choosing(name, 'shared', `filter and order by ${name}, all lines have it`),
  ),
]

function choosing(
  strategy: StrategyName,
  which: keyof LinesSide['calls'],
  name: string,
): ScaleCase<LinesSide> {
  return {
    name,
    times: 50,
    atOnce: AT_ONCE,
    run({ catalog, table, calls, lines }) {
      const call = calls[which]
      const { request } = call
      if (!request) throw new Error('the call has no request')
      for (let i = 0; i < AT_ONCE; i++) {
        const { candidates } = table.of(catalog, request.model, request.operation)
        const kept = filterCandidates(candidates, call, { request }, [])
        const ordered = orderCandidates(kept, STRATEGIES[strategy], call, request.constraint)
        if (ordered.length !== (which === 'alone' ? 1 : lines)) throw new Error('lines are missing')
      }
    },
  }
}

/** The config of a gateway with so many lines. */
export function linesConfig(lines: number, origin = 'http://127.0.0.1:9') {
  const model = { kind: 'chat', contextWindow: 128_000, maxOutputTokens: 4096, features: ['stream', 'tools'] }
  const price = { inputPerMillion: '0.15', outputPerMillion: '0.60' }
  return loadConfig({
    accounts: [],
    keys: [],
    models: [BENCH_MODEL, ALONE_MODEL].map((id) => ({ id, ...model, price })),
    lines: Array.from({ length: lines }, (_, i) => ({
      id: `line-${i}`,
      provider: `provider-${i % 20}`,
      protocol: 'openai',
      baseUrl: `${origin}/v1`,
      weight: 1 + (i % 5),
      models: { [BENCH_MODEL]: BENCH_MODEL, ...(i === lines - 1 && { [ALONE_MODEL]: BENCH_MODEL }) },
    })),
  })
}

export function withLines(lines: number): LinesSide {
  const { catalog } = linesConfig(lines)
  const callFor = (id: string) => chatCall(catalog.models.get(id) as Model)
  const calls = { shared: callFor(BENCH_MODEL), alone: callFor(ALONE_MODEL) }
  return { lines, catalog, table: new CandidateTable(new LineRegistry()), calls }
}

function chatCall(model: Model): OpenCall {
  const req = new IncomingMessage(new Socket())
  const call = openCall(req, new ServerResponse(req))
  const raw = Buffer.from(chatRequest(null))
  call.request = {
    operation: chatCompletions,
    body: { raw, json: JSON.parse(raw.toString()) as Record<string, unknown> },
    model,
    fallbacks: [],
    stream: false,
    features: new Set(),
    estimatedInputTokens: 44,
    windowTokens: 44,
    maxOutputTokens: 256,
    answers: 1,
    units: 0,
    messages: 2,
    tools: 0,
    images: 0,
    webSearches: 0,
    constraint: undefined,
    provider: null,
    references: [],
  }
  return call
}
