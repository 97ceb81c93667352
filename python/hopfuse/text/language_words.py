"""Words that tell a language, and words that only ask, for each language."""

from __future__ import annotations

from collections.abc import Mapping

#: The most frequent function words of languages that are told by them.
FUNCTION_WORDS: Mapping[str, str] = {
    "arabic": """
        أن أو إذا إلا إلى التي الذي الذين بعد بين تم ثم حتى حيث ذلك على عن عند غير فإن في قبل قد كان كانت كل كما
        لا لم له لها ما مع من منذ هذا هذه هو هي و وفي وقد ولا يكون
    """,
    "danish": """
        af alle at blev de dem den der deres det dog du efter ej eller en er et for fra få før han har havde hun
        hvis i ikke ind jeg kan kun kunne man med meget men mere mod må ned nogle nu når og også om op os over
        på sig sin skal skulle som så til ud under var ved vi vil være været
    """,
    "dutch": """
        aan al alle als bij daar dan dat de der deze die dit door een en er had heb hebben heeft het hier hij ik
        in is je kan kunnen maar meer men met moet na naar niet nog nu of om omdat onder ook op over te tegen
        tot tussen uit van veel voor waren was we wel werd wij worden wordt ze zich zij zijn zo zonder zou
    """,
    "english": """
        a about after all also although an and any are as at be because been before being but by can could did
        do does for from had has have he her his i if in into is it its may more most no not of on only or other
        our out over she should so some such than that the their them then there these they this those through
        to under up was we were will with would you your
    """,
    "finnish": """
        ei eli en että he hän hänen ja jo joiden joka jonka jos jotka kanssa koska kuin kun mukaan mutta myös
        niiden niin nyt oli olivat olla on ovat se sekä sen siitä sillä sitä tai tämä tämän vain vielä voi
    """,
    "french": """
        a ai ainsi après au aussi autre aux avant avec avoir c car ce ces cet cette comme d dans de des donc du
        elle elles en entre est et eu eux fait il ils j je l la le les leur leurs lui m ma mais me mes moi mon
        même n ne nos notre nous on ont ou par pas peut peuvent plus pour qu s sa sans se ses si son sont sous
        sur t ta te tous tout toute toutes tu un une vers vos votre vous y à étaient était été être
    """,
    "german": """
        aber alle als also am an auch auf aus bei bis da damit dann das dass dem den der des die dies diese
        diesem diesen dieser dieses doch du durch ein eine einem einen einer eines er es für gegen haben hat
        hatte ich ihm ihn ihr ihre im in ins ist kann keine können man mehr mit muss nach nicht noch nur ob oder
        ohne sehr sein seine sich sie sind so sowie um und uns unter vom von vor war waren wenn werden wir wird
        wurde wurden zu zum zur zwischen über
    """,
    "hindi": """
        अपने इस एक और कर करने का कि किया की के को गया जा जाता जो तक तथा था थी थे नहीं ने पर भी में यह या ये वह
        साथ से ही है हैं हो होता
    """,
    "hungarian": """
        a aki amely ami az azt csak de egy el ez ezt ha hogy illetve is kell ki lehet lesz majd meg minden mint
        már még nem pedig szerint után vagy van volt által és így
    """,
    "italian": """
        a ad ai al alla alle anche c come con da dagli dai dal dalla dalle degli dei del della delle dello di e
        ed era erano essere fra gli ha hai hanno ho i il in io l la le lei lo loro lui ma mi molto ne negli nei
        nel nella nelle nello noi non o ogni per più poi se senza si sia sono stata stato su sua sue sui sul
        sulla suo suoi tra tutti tutto un una uno è
    """,
    "nepali": """
        अनि अर्को उनी एउटा एक का की को गरेको गर्ने छ छन् तथा थियो देखि पनि भएको भने मा यस यो र लागि ले सबै हुन्
        हो
    """,
    "norwegian": """
        alle at av ble de dem den der deres det du eller en er et etter for fra før hadde han har hun i ikke inn
        jeg kan kun kunne man med meget men mer mot må ned noen nå når og også om opp oss over på seg sin skal
        skulle som så til under ut var ved vi vil være vært
    """,
    "persian": """
        آن است اما این با باید بر برای به بود بین تا خود دارد در را شد شده شود می نیز ها های هر هم همه و وی پس
        چون کرد کرده کند که یا یک
    """,
    "polish": """
        a aby ale bez bo by być był była było były dla do gdy go i ich im innych istnieje jako jego jej jest już
        lub ma może można na nad nie niż o od oraz po pod poza przed przez przy się są tak także tego tej ten to
        tych tylko tym w we więc z za ze że
    """,
    "portuguese": """
        a ainda ao aos as até com da das de dela dele deles depois do dos e ela ele eles em entre era eram essa
        esse esta estas este estes está estão foi foram há isso isto já lhe mais mas me mesmo meu muito na nas
        nem no nos nossa nosso não nós o os ou outra outro para pela pelas pelo pelos pode pois por se sem ser
        seu seus sob sobre sua suas são só também tem têm um uma umas uns você à às é
    """,
    "romanian": """
        a ai al ale am ar are au ca care ce cea cei cel cele cu că da dar de din după e ea ei el ele este eu fi
        fie fost la le lui mai ne nu o pe pentru prin sa sau se sunt să său toate un una unei unor unui în între
        și
    """,
    "russian": """
        а без бы был была были было быть в вас вы до его ее если есть еще же за и из или им их к как ко ли между
        меня мне мы на над нас не него нее нет ни них но о об он она они оно от по под после при с сам свой со
        так также такой там то тогда того тоже только том тот ты у уже хотя чтобы эта эти этих это этого этой
        этом этот я
    """,
    "spanish": """
        a al algo ante antes así aunque cada con contra de del desde donde durante e el ella ellas ellos en
        entre era eran es esa ese eso esta estas este esto estos está están fue fueron ha había han hasta hay la
        las le les lo los me mi muy más ni no nos o otra otras otro otros para pero poco por porque puede pues
        se sea según ser si sido sin sobre son su sus sólo también tanto te tiene tienen todo todos tu tus un
        una unas uno unos y ya yo él
    """,
    "swedish": """
        alla att av blev bli blir de dem den denna deras dess dessa det detta dock du där efter eller en er ett
        från för före genom hade han hans har hon hos i icke in inte jag kan kunde man med mellan men mer mot
        mycket många ned ni nu när någon något och också om oss på sedan sig sin sina ska skall skulle som så
        till under upp ut utan vi vid vill än är åt över
    """,
    "turkish": """
        ama ancak bazı ben bir biz bu bunu bunun da daha de değil diye en gibi göre hem her ile ise için kadar
        ki mi mu mü mı o olan olarak oldu olduğu olduğunu olup onu onun sonra tarafından ve veya ya yine çok
        çünkü üzere şey şu
    """,
    "ukrainian": """
        або але без був була були було бути в ви від для до з за зі й його к коли ли лише ми між на над не ні о
        об по при під після та так також те ти то у це цей цього ця ці що щоб я як є і із їх її
    """,
    "urdu": "اس ان اور ایک بھی تک تھا تھی تھے جو سے لیے میں نہیں نے وہ پر کا کر کو کی کے ہو ہوتا ہوں ہیں ہے یا یہ",
}
#: The few words that are in most texts of a language: articles, and the commonest prepositions and conjunctions.
COMMON_WORDS: Mapping[str, str] = {
    "arabic": "أن إلى على عن في من و",
    "danish": "af at de den der det en er et for i med og på som til var",
    "dutch": "aan als dat de den der die een en het in is met of om op te tot van voor",
    "finnish": "ei että ja joka oli on se tai",
    "french": "au aux d de des du en et l la le les ou par un une à",
    "german": """
        als am an auf das dem den der des die ein eine einem einen einer eines für im in ist mit oder und von zu
        zum zur
    """,
    "hindi": "और का की के को में से है हैं",
    "hungarian": "a az egy hogy is és",
    "italian": """
        a al alla alle con da dal dalla dei del della delle di e ed gli i il in l la le lo nel nella o per un
        una uno è
    """,
    "nepali": "का की को मा र ले",
    "norwegian": "av de den det en er et for i med og på som til var å",
    "persian": "از با به در را و که",
    "polish": "a do i jest na o od się to w z za ze że",
    "portuguese": "a ao aos as com da das de do dos e em na nas no nos o os ou para por um uma à às é",
    "romanian": "a al ale cu de din la o pe un în și",
    "russian": "а в и из к на о от по с у",
    "spanish": "a al con de del el en es la las lo los o para por un una y",
    "swedish": "att av de den det en ett för i med och på som till är",
    "turkish": "bir bu da de ile ve",
    "ukrainian": "а в до з за й на та у і",
    "urdu": "اور سے میں نے کا کو کی کے ہے",
}
#: Words that ask. They are no stop words of passages.
QUESTION_WORDS: Mapping[str, str] = {
    "arabic": "أي أين كم كيف لماذا ماذا متى من هل",
    "danish": "hvad hvem hvilke hvilken hvilket hvis hvor hvordan hvorfor hvornår",
    "dutch": """
        hoe hoelang hoeveel waar waaraan waarbij waardoor waarheen waarin waarmee waarom waarop waarvan waarvoor
        wanneer wat welk welke wie wiens
    """,
    "english": "how what whatever when whenever where wherever which whichever who whoever whom whose why",
    "finnish": "kenen ketkä kuinka kuka mihin miksi mikä milloin missä mistä miten mitkä mitä montako",
    "french": """
        auquel auxquelles auxquels combien comment desquelles desquels duquel laquelle lequel lesquelles
        lesquels où pourquoi qu quand que quel quelle quelles quels qui quoi
    """,
    "german": """
        wann warum was welche welchem welchen welcher welches wem wen wer weshalb wessen wie wieso wieviel
        wieviele wo wodurch wofür woher wohin womit woran worauf woraus worin worüber wovon wozu
    """,
    "hindi": "कब कहाँ कहां कितना कितनी कितने किस किसका किसकी किसके किसने कैसा कैसे कौन कौनसा क्या क्यों",
    "hungarian": "hogyan hol honnan hova hány kicsoda kik melyik mennyi mi mikor milyen mit miért",
    "italian": """
        che chi come cos cosa dov dove perché qual quale quali quand quando quant quanta quante quanti quanto
    """,
    "norwegian": "hva hvem hvilke hvilken hvilket hvor hvordan hvorfor når",
    "persian": "چرا چطور چند چه چگونه چی کجا کدام کی",
    "polish": """
        co czego czemu czy czyj czyja czyje dlaczego dokąd gdzie ile jak jaka jaki jakie kiedy kogo kto która
        które który skąd
    """,
    "portuguese": "aonde como onde porque porquê quais qual quando quanta quantas quanto quantos que quem quê",
    "romanian": "care ce cine cum când cât câte câți unde",
    "russian": """
        где зачем как какая какие каким какими каких какого какое какой каком какому какую кем когда кого ком
        кому которая которое которые который кто куда откуда отчего почему сколько чего чей чем чему что чье чьи
        чья чьё чём
    """,
    "spanish": "adónde cuál cuáles cuándo cuánta cuántas cuánto cuántos cómo dónde porqué quién quiénes qué",
    "swedish": "hur när vad var varför vart vem vems vilka vilken vilket",
    "turkish": "hangi kaç kim kimin nasıl ne neden nerede nereden nereye niye niçin",
    "ukrainian": "де звідки коли котра котре котрий куди навіщо скільки хто чий чия чому що як яка яке який які",
}
#: Words that ask only after another one: "many" in "how many".
ASKING_AFTER: Mapping[str, Mapping[str, str]] = {
    "danish": {"hvor": "mange meget"},
    "dutch": {"hoe": "veel"},
    "english": {"how": "many much"},
    "finnish": {"kuinka": "moni monta paljon"},
    "german": {"wie": "viel viele vielen"},
    "norwegian": {"hvor": "mange mye"},
    "swedish": {"hur": "många mycket"},
}
