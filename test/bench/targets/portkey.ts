/** Portkey's gateway as it comes, which authenticates nobody, counts nothing and relays. `PORTKEY` is its program. */
import { connect } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { freePort } from '../../support/free-port.ts'

const port = await freePort()
process.argv.push(`--port=${port}`, '--headless')
process.env.TRUSTED_CUSTOM_HOSTS = '127.0.0.1'
await import(`${process.env.PORTKEY}`)
while (!(await listens())) await wait(50)
console.log(`\nlistening ${port}`)

function listens(): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}
