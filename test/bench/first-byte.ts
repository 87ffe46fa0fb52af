/** Time from the request to the first byte of a stream's body, one request at a time. */
import { Agent, request } from 'node:http'
import type { Running } from './processes.ts'
import { headersTo, pathTo, requestTo } from './workload.ts'

const WARM_UP_REQUESTS = 300
const REQUESTS_A_ROUND = 300

/** @returns for each target its times in milliseconds, one list a round. */
export async function measureFirstByte(targets: Running[], rounds: number): Promise<number[][][]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (const target of targets) await times(target, WARM_UP_REQUESTS, agent)
  const measured: number[][][] = targets.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (const [i, target] of targets.entries())
      measured[i]?.push(await times(target, REQUESTS_A_ROUND, agent))
  }
  agent.destroy()
  return measured
}

async function times(target: Running, count: number, agent: Agent): Promise<number[]> {
  const measured: number[] = []
  while (measured.length < count) measured.push(await firstByteMs(target, agent))
  return measured
}

function firstByteMs(target: Running, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const began = performance.now()
    const url = target.url + pathTo(target.name)
    const req = request(url, { method: 'POST', headers: headersTo(target), agent }, (res) => {
      let firstByte = Number.NaN
      res.once('data', () => {
        firstByte = performance.now() - began
      })
      res.on('error', reject)
      res.on('end', () => {
        if (res.statusCode === 200 && firstByte > 0) resolve(firstByte)
        else reject(new Error(`${target.name}: answered ${res.statusCode}\n${target.complaints()}`))
      })
      res.resume()
    })
    req.on('error', reject)
    req.end(requestTo(target.name, 'coalesced'))
  })
}
