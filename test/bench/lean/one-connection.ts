import { connect, type Socket } from 'node:net'
import { BENCH_KEY, chatRequest, PATH, PLAIN_ANSWER } from '../workload.ts'

const body = chatRequest(null)
const request = [
  `POST ${PATH} HTTP/1.1`,
  'host: gateway',
  `authorization: Bearer ${BENCH_KEY}`,
  'content-type: application/json',
  `content-length: ${Buffer.byteLength(body)}`,
  '',
  body,
].join('\r\n')

const HEAD_END = '\r\n\r\n'

/** A caller with one connection, which it keeps: it sends plain chat calls one after the other. */
export class OneConnection {
  readonly #socket: Socket
  #received = ''
  #answered: { resolve(): void; reject(error: Error): void } | undefined

  constructor(port: number) {
    this.#socket = connect(port, '127.0.0.1').setNoDelay().setEncoding('latin1')
    this.#socket.on('data', (text: string) => this.#take(text))
    this.#socket.on('error', (error) => this.#answered?.reject(error))
    this.#socket.on('end', () => this.#answered?.reject(new Error('the connection was closed')))
  }

  /** @throws {Error} when an answer is not the upstream's, unchanged. */
  async calls(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await new Promise<void>((resolve, reject) => {
        this.#answered = { resolve, reject }
        this.#socket.write(request)
      })
    }
  }

  #take(text: string): void {
    this.#received += text
    const head = this.#received.indexOf(HEAD_END)
    if (head === -1 || this.#received.length < head + HEAD_END.length + PLAIN_ANSWER.length) return
    if (this.#received.startsWith('HTTP/1.1 200 ') && this.#received.endsWith(HEAD_END + PLAIN_ANSWER))
      this.#answered?.resolve()
    else this.#answered?.reject(new Error(this.#received))
    this.#received = ''
  }
}
