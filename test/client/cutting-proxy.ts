import type { AddressInfo } from 'node:net'
import { connect, createServer, type Socket } from 'node:net'
import type { TestContext } from 'node:test'

/** The fate of a connection. */
export type Fate =
  | 'pass'
  /** Cut as soon as it is made. */
  | 'refused'
  /** Cut when the first bytes of an answer come, all of which are lost. */
  | 'answer_lost'
  /** Cut behind the first bytes of an answer. */
  | 'answer_cut'
  /** Cut behind the first bytes of a request. */
  | 'request_cut'

/** A connection between clients and a gateway that breaks as a test says. */
export interface CuttingProxy {
  readonly url: string
  /** The port that the next connection goes to. */
  target: () => number
  /** The fate of the next connection. */
  fate: () => Fate
}

export async function cuttingProxy(t: Pick<TestContext, 'after'>, targetPort: number): Promise<CuttingProxy> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    open.add(client)
    client.on('error', () => {}).on('close', () => open.delete(client))
    const fate = proxy.fate()
    if (fate === 'refused') return void client.destroy()
    const target = connect(proxy.target(), '127.0.0.1')
    open.add(target)
    target.on('error', () => {}).on('close', () => open.delete(target))
    const cut = (): void => {
      client.destroy()
      target.destroy()
    }
    client.on('close', cut)
    target.on('close', () => client.destroySoon())
    client.on('data', (bytes) => {
      target.write(bytes)
      if (fate === 'request_cut') cut()
    })
    target.on('data', (bytes) => {
      if (fate === 'answer_lost') return cut()
      if (fate === 'answer_cut') return void client.write(bytes.subarray(0, bytes.length / 2), cut)
      if (!client.write(bytes)) {
        target.pause()
        client.once('drain', () => target.resume())
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        for (const socket of open) socket.destroy()
      }),
  )
  const proxy: CuttingProxy = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    target: () => targetPort,
    fate: () => 'pass',
  }
  return proxy
}

/** These fates one after the other, and then none. */
export function inTurn(...fates: readonly Fate[]): () => Fate {
  let made = 0
  return () => fates[made++] ?? 'pass'
}
