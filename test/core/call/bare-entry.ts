import { type CallEnding, entryOf, type OpenCall } from '../../../lib/core/call/index.ts'

export const START = Date.UTC(2026, 0, 2, 3, 4, 5, 6)
const BARE = {
  guards: [],
  cache: null,
  id: 'req_1',
  startedAt: START,
  clientIp: null,
  clientRequestId: null,
  method: 'POST',
  shortPath: '/v1/chat/completions',
  protocol: { name: 'openai' },
  ...{ model: null, user: null, tags: null, principal: null, request: null, routing: null },
  ...{ usage: null, billing: null, limit: null, idempotency: null, outcome: null },
}
/** The entry of a call with these parts, and no others. */
export const entry = (parts: object = {}, ending?: CallEnding) =>
  entryOf({ ...BARE, ...parts } as unknown as OpenCall, ending)
