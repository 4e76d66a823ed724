// The cache of records, which the pages behind the sign-in bring along.
import { cacheExchange } from '@urql/exchange-graphcache'
import { setCache } from './current-client'
import { keys } from './keys'

setCache(cacheExchange({ keys }))
