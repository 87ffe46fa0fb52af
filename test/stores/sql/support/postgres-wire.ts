import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

const READY_FOR_QUERY = 'Z'.charCodeAt(0)
const FRAME_HEADER_BYTES = 5
const IDLE = 'I'.charCodeAt(0)

export interface Wire {
  readonly url: string
  /** How often Postgres has said that it waits for what comes next: once for each round trip. */
  roundTrips(): number
  /** How often it waited so within a transaction, with its locks. */
  withinTransactions(): number
  /** Keeps the last bytes of what is sent next from Postgres; resolves to what lets them through. */
  holdBack(bytes: number): Promise<() => void>
}

/** Stands between a process and its Postgres. */
export async function wireTo(t: Pick<TestContext, 'after'>, url: string): Promise<Wire> {
  let ready = 0
  let within = 0
  let hold: ((chunk: Buffer, far: Socket) => void) | undefined
  const proxy = createServer((near) => {
    const far = connect(Number(new URL(url).port), '127.0.0.1')
    near.on('data', (chunk: Buffer) => {
      if (hold) hold(chunk, far)
      else far.write(chunk)
    })
    far.pipe(near)
    near.on('error', () => far.destroy())
    far.on('error', () => near.destroy())
    let rest = Buffer.alloc(0)
    far.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      while (rest.length >= FRAME_HEADER_BYTES && rest.length > rest.readUInt32BE(1)) {
        if (rest[0] === READY_FOR_QUERY) {
          ready++
          if (rest[FRAME_HEADER_BYTES] !== IDLE) within++
        }
        rest = rest.subarray(1 + rest.readUInt32BE(1))
      }
    })
  })
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve))
  t.after(() => proxy.close())
  const through = new URL(url)
  through.port = `${(proxy.address() as AddressInfo).port}`
  const holdBack = (bytes: number) =>
    new Promise<() => void>((resolve) => {
      hold = (chunk, far) => {
        hold = undefined
        far.write(chunk.subarray(0, -bytes))
        resolve(() => far.write(chunk.subarray(-bytes)))
      }
    })
  return { url: through.href, roundTrips: () => ready, withinTransactions: () => within, holdBack }
}
