/** Memory of a target per open stream: thousands of streams whose upstream sent one chunk and then holds. */

import type { Socket } from 'node:net'
import { connect } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Running } from './processes.ts'
import { openFilesLimit, residentKiB } from './processes.ts'
import { headersTo, pathTo, requestTo } from './workload.ts'

export interface HeldStreams {
  streams: number
  /** Resident memory above that of the warm target, per stream: as it is, and after a garbage collection. */
  kibPerStream: number
  kibPerStreamCollected: number
}

const OPENED_AT_ONCE = 50
const WARM_UP_STREAMS = 200
const STREAM_TIMEOUT_MS = 20_000
const SETTLE_MS = 1500
/** Open files that a target needs besides two sockets a stream. */
const SPARE_FILES = 200

/** The target must have been started with `--expose-gc --import collect-on-signal.ts`. */
export async function measureHeldStreams(target: Running, wanted: number): Promise<HeldStreams> {
  const limit = Math.min(openFilesLimit(target.pid), 2 * openFilesLimit(process.pid))
  const streams = Math.min(wanted, Math.floor((limit - SPARE_FILES) / 2))
  close(await openStreams(target, WARM_UP_STREAMS))
  await delay(SETTLE_MS)
  await collect(target)
  const before = resident(target)
  const open = await openStreams(target, streams)
  await delay(SETTLE_MS)
  const held = resident(target)
  await collect(target)
  const heldCollected = resident(target)
  const lost = open.filter((socket) => socket.destroyed).length
  close(open)
  if (lost > 0)
    throw new Error(`${target.name}: ${lost} of ${streams} held streams ended\n${target.complaints()}`)
  return {
    streams,
    kibPerStream: (held - before) / streams,
    kibPerStreamCollected: (heldCollected - before) / streams,
  }
}

function resident(target: Running): number {
  const kib = residentKiB(target.pid)
  if (kib === null) throw new Error('The memory case reads /proc, which this system does not have.')
  return kib
}

async function collect(target: Running) {
  process.kill(target.pid, 'SIGUSR2')
  await delay(SETTLE_MS)
}

function close(open: Socket[]) {
  for (const socket of open) socket.destroy()
}

async function openStreams(target: Running, count: number): Promise<Socket[]> {
  const open: Socket[] = []
  while (open.length < count) {
    const batch = Array.from({ length: Math.min(OPENED_AT_ONCE, count - open.length) }, () =>
      openStream(target),
    )
    open.push(...(await Promise.all(batch)))
  }
  return open
}

/** Resolves when the first chunk has arrived. */
function openStream(target: Running): Promise<Socket> {
  const { hostname, port, host } = new URL(target.url)
  const body = requestTo(target.name, 'hold')
  const headers = { host, ...headersTo(target), 'content-length': Buffer.byteLength(body) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let received = ''
    const fail = (why: string) => {
      socket.destroy()
      reject(new Error(`${target.name}: ${why}\n${received}\n${target.complaints()}`))
    }
    const timer = setTimeout(fail, STREAM_TIMEOUT_MS, 'a held stream sent no first chunk')
    socket.on('error', (error) => fail(error.message))
    socket.once('close', () => fail('a held stream was closed'))
    socket.on('data', (data) => {
      if (received.includes('data: ')) return
      received += data.toString('latin1')
      if (!received.startsWith('HTTP/1.1 200')) fail('a held stream was refused')
      if (!received.includes('data: ')) return
      clearTimeout(timer)
      resolve(socket)
    })
    socket.write(`POST ${pathTo(target.name)} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
  })
}
