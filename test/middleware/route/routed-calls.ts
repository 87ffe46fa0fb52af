import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Dispatcher } from 'undici'
import { type CallEnding, type CallRequest, openCall } from '../../../lib/core/call/index.ts'
import { FREE, type Line } from '../../../lib/core/catalog/index.ts'
import { loadConfig } from '../../../lib/core/config/index.ts'
import { chatCompletions, type Operation } from '../../../lib/core/operations/index.ts'
import { translationsOf } from '../../../lib/core/translate/index.ts'
import type { AnswerEnd } from '../../../lib/middleware/route/attempt/answer-end.ts'
import { RoutedCall } from '../../../lib/middleware/route/routed-call.ts'
import type { DisconnectPolicy } from '../../../lib/routing/attempt/departure.ts'
import type { Candidate } from '../../../lib/routing/candidates/candidate.ts'
import { configWith, LINE } from '../../core/config/config.ts'
import { recordingLogger } from '../../support/app-server.ts'
import { eventsOf, OPENAI_STREAM } from '../../support/exchange.ts'

export const PRICE = { ...FREE, inputPerMillion: 1_000_000n, outputPerMillion: 1_000_000n }

export const JSON_TYPE = 'application/json'
export const STREAM = 'text/event-stream'
export const EVENTS = eventsOf(OPENAI_STREAM, ['Hi', ' there'])
/** Up to its first word. */
export const BEGUN = EVENTS.slice(0, 2).join('')
export const REST = EVENTS.slice(2).join('')

/** The trace of a call with a key, which keeps what is not sent. */
export const idempotency = (kept: string[]) =>
  ({ keep: (bytes: unknown) => void kept.push(String(bytes)) }) as never

interface Given {
  operation?: Operation
  members?: object
  line?: object
  policy?: DisconnectPolicy
  /** How settling goes; at once else. */
  settles?: (ending: CallEnding) => Promise<void> | undefined
}

/** A call on one line, without a connection on either side: what the line answers is told, what the caller gets noted. */
export function routedCall({
  operation = chatCompletions,
  members = {},
  line: own = {},
  policy = { onDisconnect: 'abort', drainMs: 1000 },
  settles = () => undefined,
}: Given = {}) {
  const { catalog } = loadConfig(configWith({ lines: [{ ...LINE, ...own }] }))
  const line = catalog.lines[0] as Line
  const log: string[] = []
  const note =
    (what: string) =>
    (...given: unknown[]) =>
      void log.push([what, ...given.map(String)].join(' '))
  const req = new IncomingMessage(new Socket())
  const res = new ServerResponse(req)
  const { writeHead } = res
  Object.assign(res, {
    writeHead(status: number, headers: object) {
      log.push(`head ${status}`)
      return writeHead.call(res, status, headers as never)
    },
    write: (bytes: unknown) => log.push(`write ${bytes}`),
    end: note('end'),
  })
  const logger = recordingLogger()
  const call = openCall(req, res, { logger })
  const endings: CallEnding[] = []
  call.onSettle((ending) => {
    endings.push(ending)
    return settles(ending)
  })
  const json = { model: 'chat', messages: [{ role: 'user', content: 'hi' }], ...members }
  const request = {
    operation,
    body: { json, raw: Buffer.from(JSON.stringify(json)) },
    model: catalog.models.get('chat'),
    stream: false,
    answers: 1,
    units: 0,
    tools: 0,
    webSearches: 0,
    estimatedInputTokens: 5,
    maxOutputTokens: undefined,
    features: new Set(),
    references: [],
    ...members,
  } as unknown as CallRequest
  call.request = request
  const nexts: unknown[] = []
  const routed = new RoutedCall(call, request, {}, res, (error?: unknown) => nexts.push(error), policy)
  const speeds: number[][] = []
  let sender: Dispatcher.DispatchHandler | undefined
  const aborted: unknown[] = []
  const controller = {
    pause: note('pause'),
    resume: note('resume'),
    abort: (why: unknown) => aborted.push(why),
  }
  const state = {
    inFlight: 0,
    recent: { count: () => {} },
    wire: {
      dispatch(_: unknown, handler: Dispatcher.DispatchHandler) {
        sender = handler
        return true
      },
    },
    observeFirstByte: (ms: number) => speeds.push([ms]),
    observeThroughput: (tokens: number, ms: number) => speeds.push([tokens, ms]),
  }
  const translation = translationsOf(operation).find(({ to }) => to.protocol === line.protocol)
  const native = operation.protocol === line.protocol
  const candidate = {
    ...{ line, upstreamModel: 'upstream', price: PRICE, contextWindow: undefined, state, native },
  } as unknown as Candidate
  if (!native && translation) routed.translateBy([translation])
  let end: AnswerEnd | undefined
  let finishing: Promise<unknown> | undefined
  const pass = {
    success: note('success'),
    ended(ending: AnswerEnd) {
      end = ending
      finishing = (async () => routed.finish(ending, candidate))().then(
        () => 'done',
        (error: unknown) => error,
      )
    },
  }
  const more = async (...pieces: string[]): Promise<void> => {
    for (const piece of pieces) {
      sender?.onResponseData?.(told, Buffer.from(piece))
      await Promise.resolve()
    }
  }
  const told = controller as unknown as Dispatcher.DispatchController
  return {
    ...{ call, res, routed, line, candidate, log, nexts, endings, speeds, aborted, logger },
    /** Sends the request, which reaches the line. */
    send(connects = true) {
      const unfit = routed.prepare(candidate)
      if (unfit) throw unfit
      routed.attempt(candidate, pass, performance.now() + 60_000)
      if (connects) sender?.onRequestStart?.(told, {})
    },
    /** The line answers, each piece in a turn of its own. */
    async answer(status: number, type: string, ...pieces: string[]) {
      sender?.onResponseStart?.(told, status, { 'content-type': type }, 'OK')
      await more(...pieces)
    },
    more,
    over: () => sender?.onResponseEnd?.(told, {}),
    breakOff: () => sender?.onResponseError?.(told, new Error('reset')),
    leave() {
      call.hold()
      res.emit('close')
    },
    get end() {
      return end
    },
    /** What becomes of the call once the attempt is over. */
    get finished() {
      return finishing
    },
  }
}
