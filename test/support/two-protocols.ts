import type { Mode } from './exchange.ts'
import type { TestGatewayOptions } from './gateway.ts'
import { answerJson, type ScriptedUpstream, startUpstream } from './scripted-upstream.ts'

/** The same way of calling in the other protocol: what a translated line is asked. */
export const acrossFrom = ({ protocol, stream }: Mode): Mode => ({
  protocol: protocol === 'openai' ? 'anthropic' : 'openai',
  stream,
})

/** The upstreams of a model that is served in both protocols. */
export interface TwoProtocols {
  /** Speaks the caller's protocol. */
  readonly own: ScriptedUpstream
  /** Speaks the other one. */
  readonly foreign: ScriptedUpstream
  /** Their lines, "own" and "foreign", in this order. */
  linesFor(mode: Mode, ownLine?: object, foreignLine?: object): TestGatewayOptions['lines']
  /** Forgets what was received. */
  clear(): void
  close(): Promise<unknown>
}

export async function startTwoProtocols(): Promise<TwoProtocols> {
  const own = await startUpstream()
  const foreign = await startUpstream()
  return {
    own,
    foreign,
    linesFor: (mode, ownLine = {}, foreignLine = {}) => [
      { url: own.url, id: 'own', protocol: mode.protocol, ...ownLine },
      { url: foreign.url, id: 'foreign', protocol: acrossFrom(mode).protocol, ...foreignLine },
    ],
    clear() {
      for (const { requests } of [own, foreign]) requests.length = 0
    },
    close: () => Promise.all([own.close(), foreign.close()]),
  }
}

/** Refuses a request with a status, worded so that either protocol reads it. */
export const refuse =
  (status: number, type = 'api_error') =>
  (res: Parameters<typeof answerJson>[0]): void =>
    answerJson(res, status, { type: 'error', error: { type, message: 'no' } })
