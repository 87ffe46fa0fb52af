import { connect, type Socket } from 'node:net'
import { Pool } from 'undici'
import type { CleanUp } from '../../support/clean-up.ts'
import { until } from '../../support/until.ts'

/** Callers that send one request after the other on connections they keep. */
export interface Load {
  /** Requests answered as they should be. */
  readonly answered: number
  /** The failures of the others. */
  readonly failures: readonly string[]
  /** The request ids of those that were answered. */
  readonly ids: readonly string[]
  /** Resolves when so many more are answered, or one is not. */
  more(answers: number): Promise<void>
  /** Resolves when each caller has its last answer. */
  stop(): Promise<void>
}

/** A request that is sent again and again. */
export interface Asked {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A chat with the demo key, to the model given. */
export function askedChat(model = 'chat-small', stream = false): Asked {
  const messages = [{ role: 'user', content: 'Hi' }]
  return {
    path: '/v1/chat/completions',
    headers: { authorization: 'Bearer sk-demo', 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream }),
  }
}

/**
 * Puts load on a gateway: half of the callers with undici, which heeds what answers say, half on bare sockets.
 *
 * @param mostPauseMs between two requests of a caller.
 */
export function keepAliveLoad(
  t: CleanUp,
  url: string,
  asked: readonly Asked[],
  callers = 8,
  mostPauseMs = 20,
): Load {
  const failures: string[] = []
  const ids: string[] = []
  let stopped = false
  const pool = new Pool(url, { connections: callers, pipelining: 1 })
  const note = (status: number, body: string, id: string | undefined): void => {
    const whole = body.endsWith('}') || body.trimEnd().endsWith('data: [DONE]')
    if (status === 200 && whole && id !== undefined) ids.push(id)
    else failures.push(`${status} ${body.slice(-200)}`)
  }
  const caller = async (send: (asked: Asked) => Promise<void>, first: number): Promise<void> => {
    for (let i = first; !stopped; i++) {
      await send(asked[i % asked.length] as Asked).catch((error: unknown) => failures.push(String(error)))
      // Sends at all moments of the server's.
      await new Promise((resolve) => setTimeout(resolve, Math.random() * mostPauseMs))
    }
  }
  const byPool = async ({ path, headers, body }: Asked): Promise<void> => {
    const answer = await pool.request({ path, method: 'POST', headers, body })
    const id = answer.headers['x-request-id']
    note(answer.statusCode, await answer.body.text(), typeof id === 'string' ? id : undefined)
  }
  const running = Array.from({ length: callers }, (_, i) => {
    if (i % 2 === 0) return caller(byPool, i)
    const wire = new BareConnection(new URL(url))
    return caller(async (each) => note(...(await wire.ask(each))), i).finally(() => wire.close())
  })
  const load: Load = {
    get answered() {
      return ids.length
    },
    failures,
    ids,
    more(answers) {
      const goal = ids.length + answers
      return until(() => ids.length >= goal || failures.length > 0, 'the load', 30_000)
    },
    async stop() {
      stopped = true
      await Promise.all(running)
      if (!pool.closed) await pool.close()
    },
  }
  t.after(() => load.stop())
  return load
}

/** Keeps its connection until an answer says that it ends; does not try anything twice. */
class BareConnection {
  readonly #url: URL
  #socket: Socket | undefined

  constructor(url: URL) {
    this.#url = url
  }

  close(): void {
    this.#socket?.destroy()
  }

  /** Answers status, body and request id. */
  ask({ path, headers, body }: Asked): Promise<[number, string, string | undefined]> {
    const socket = this.#socket ?? connect(Number(this.#url.port), this.#url.hostname)
    this.#socket = socket
    socket.setEncoding('utf8')
    const head = Object.entries({ host: 'x', 'content-length': `${Buffer.byteLength(body)}`, ...headers })
    socket.write(
      `POST ${path} HTTP/1.1\r\n${head.map((pair) => `${pair.join(': ')}\r\n`).join('')}\r\n${body}`,
    )
    return new Promise((resolve, reject) => {
      let received = ''
      const end = (): void => {
        socket.removeAllListeners()
        socket.on('error', () => {})
      }
      const lost = (error?: Error): void => {
        end()
        this.#socket = undefined
        reject(error instanceof Error ? error : new Error(`closed behind ${JSON.stringify(received)}`))
      }
      socket.on('error', lost)
      socket.on('end', lost)
      socket.on('data', (text: string) => {
        received += text
        const answer = answerIn(received)
        if (!answer) return
        end()
        if (/^connection: close$/im.test(received.split('\r\n\r\n', 1)[0] as string)) {
          socket.destroy()
          this.#socket = undefined
        }
        resolve(answer)
      })
    })
  }
}

/** Status, body and request id, once the answer has come to its end. */
function answerIn(received: string): [number, string, string | undefined] | undefined {
  const at = received.indexOf('\r\n\r\n')
  if (at < 0) return undefined
  const head = received.slice(0, at)
  const rest = received.slice(at + 4)
  const length = /^content-length: (\d+)$/im.exec(head)?.[1]
  const whole = length === undefined ? rest.endsWith('0\r\n\r\n') : Buffer.byteLength(rest) >= Number(length)
  if (!whole) return undefined
  const body = length === undefined ? rest.replace(/\r\n0\r\n\r\n$/, '') : rest
  return [Number(head.slice(9, 12)), body, /^x-request-id: (\S+)$/im.exec(head)?.[1]]
}
