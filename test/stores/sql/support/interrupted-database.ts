import { connectionsOf } from '../../../../lib/stores/sql/driver/postgres/postgres-dialect.ts'
import type { RowWrite } from '../../../../lib/stores/sql/driver/row-statement.ts'
import type { Database } from '../../../../lib/stores/sql/index.ts'

/** A thing whose members are its own, but for those given. */
function likeButFor<T extends object>(thing: T, members: Record<string, unknown>): T {
  return new Proxy(thing, {
    get(target, name) {
      if (Object.hasOwn(members, name)) return members[name as string]
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/**
 * A Postgres database of which something happens before each transaction is sent.
 *
 * @param then happens once it has ended, before anybody knows how.
 */
export function interrupted(
  db: Database,
  happens: () => Promise<unknown>,
  then: () => Promise<unknown> = async () => {},
) {
  const seen = { transactions: 0 }
  const connections = connectionsOf(db)
  const connect = async () => {
    const client = await connections.connect()
    const transact = async (writes: readonly RowWrite[]) => {
      seen.transactions++
      await happens()
      return client.transact(writes).finally(then)
    }
    return likeButFor(client, { transact })
  }
  const introspection = likeButFor(db.introspection, { connections: likeButFor(connections, { connect }) })
  return { db: likeButFor(db, { introspection }), seen }
}
